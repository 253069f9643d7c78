"""The solvers on functions that know no MDP, and Alg. 1 against a loop written out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from cases import case, mdp_of, trajectories_of
from numpy.testing import assert_allclose, assert_array_equal
from problems import problem
from scipy.optimize import lsq_linear
from seeds import generator
from worlds import ROUNDING, never_falls

from messirl import MESSI, MaxEntIRL, feature_counts, soft_policy, state_visitation
from messirl.estimators._initialization import initial_theta
from messirl.optim.box_search import projected_norm
from messirl.optim.fixed_steps import paper, rescaled
from messirl.optim.lbfgs import lbfgs
from messirl.selection import Candidate
from messirl.selection.candidates import CandidateFitter
from messirl.similarity import RBF, CompleteGraph, penalty_matrix

quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@dataclass
class Point:
    value: float
    gradient: np.ndarray


class Bowl:
    """−½ (θ − c)ᵀ diag(a) (θ − c): concave, its top at c."""

    def __init__(self, curvature, top):
        self.curvature, self.top = np.asarray(curvature, dtype=float), np.asarray(top, dtype=float)
        self.seen = []

    def __call__(self, theta):
        self.seen.append(theta.copy())
        gap = theta - self.top
        return Point(-0.5 * float(gap @ (self.curvature * gap)), -self.curvature * gap)


# ------------------------------------------------------------ the paper's solver


def test_rescaling_keeps_the_direction_and_not_the_other_coordinates():
    assert_allclose(rescaled(np.array([4.0, -2.0, 1.0]), 2.0), [2.0, -1.0, 0.5])
    inside = np.array([1.0, -2.0])
    assert rescaled(inside, 2.0) is inside
    assert_array_equal(rescaled(np.zeros(2), 1.0), 0.0)


@pytest.mark.parametrize("steps", [0, 1, 7])
def test_the_paper_takes_exactly_its_steps_even_from_the_optimum(steps):
    bowl = Bowl([1.0, 2.0], [0.0, 0.0])
    result = paper(bowl, np.zeros(2), bound=5.0, max_iter=steps, step_size=0.1, tol=1e-6)
    assert_array_equal(result.history.iteration, np.arange(steps + 1))
    assert len(bowl.seen) == steps + 1
    assert result.converged
    assert result.reason == f"all {steps} fixed steps were taken"


def test_the_paper_rescales_after_every_step():
    bowl, bound, theta = Bowl([1.0, 0.1], [10.0, -10.0]), 2.0, np.array([0.5, 0.0])
    result = paper(bowl, theta, bound=bound, max_iter=9, step_size=0.7, tol=1e-6)
    for _ in range(9):
        theta = theta + 0.7 * Bowl([1.0, 0.1], [10.0, -10.0])(theta).gradient
        size = np.abs(theta).max()
        theta = theta * bound / size if size > bound else theta
    assert_allclose(result.theta, theta, rtol=ROUNDING)
    assert_allclose(result.history.theta_norm[-1], bound, rtol=ROUNDING)


def test_the_paper_says_where_a_step_left_the_finite():
    def cliff(theta):
        return Point(0.0 if theta[0] < 2.5 else -np.inf, np.ones(1))

    with pytest.raises(ValueError, match="the objective is not finite after 3 steps of size 1"):
        paper(cliff, np.zeros(1), bound=10.0, max_iter=9, step_size=1.0, tol=0.0)
    with pytest.raises(ValueError, match="the objective is not finite at the start"):
        paper(cliff, np.full(1, 3.0), bound=10.0, max_iter=9, step_size=1.0, tol=0.0)


def forward(mdp, policy):
    return state_visitation(mdp, policy) @ mdp.features


@quiet
@pytest.mark.parametrize("entropy", ["causal", "noncausal"])
def test_messi_with_the_papers_solver_is_alg_1_written_out(entropy):
    mdp, expert, unlabelled = problem("finite")
    step, theta_max, lambda0, rounds = 0.4, 1.5, 3.0, 25
    counts = feature_counts(mdp, expert + unlabelled)
    penalty = penalty_matrix(counts, RBF(2.0))
    theta = np.zeros(3)
    for _ in range(rounds):
        policy = soft_policy(mdp, mdp.features @ theta, entropy)
        gradient = counts[: len(expert)].mean(axis=0) - forward(mdp, policy)
        theta = theta + step * (gradient - lambda0 / theta_max * penalty @ theta)
        if np.abs(theta).max() > theta_max:
            theta = theta * theta_max / np.abs(theta).max()
    model = MESSI(
        RBF(2.0),
        lambda0=lambda0,
        theta_max=theta_max,
        entropy=entropy,
        solver="paper",
        step_size=step,
        max_iter=rounds,
    ).fit(mdp, expert, unlabelled)
    assert_allclose(model.theta_, theta, rtol=1e-10)
    assert model.n_iter_ == rounds


@quiet
def test_without_penalty_the_papers_solver_is_maxents():
    mdp, expert, unlabelled = problem("finite")
    arguments = {"solver": "paper", "step_size": 0.3, "max_iter": 15}
    messi = MESSI(lambda0=0.0, **arguments).fit(mdp, expert, unlabelled)
    assert_array_equal(messi.theta_, MaxEntIRL(**arguments).fit(mdp, expert).theta_)


# ------------------------------------------------------------ the exact solver


def test_the_exact_solver_finds_the_top():
    rng = generator(0)
    bowl = Bowl(np.exp(rng.uniform(-5, 5, 12)), rng.normal(size=12))
    result = lbfgs(bowl, np.zeros(12), bound=np.inf, max_iter=500, tol=1e-7)
    assert result.converged
    assert_allclose(result.theta, bowl.top, rtol=1e-6, atol=1e-6)  # what is left of the way is an estimate


def test_the_exact_solver_finds_the_best_corner_of_the_box():
    bowl = Bowl([1.0, 2.0, 3.0, 4.0], [5.0, -0.3, 0.9, -7.0])
    result = lbfgs(bowl, np.zeros(4), bound=1.0, max_iter=100, tol=1e-10)
    assert result.converged
    assert_allclose(result.theta, [1.0, -0.3, 0.9, -1.0], atol=1e-8)
    assert result.gradient_norm <= 1e-10


def test_the_exact_solver_leaves_the_bound_where_the_gradient_leads_inside():
    bowl = Bowl([1.0, 1.0], [0.0, 0.5])
    result = lbfgs(bowl, np.array([1.0, -1.0]), bound=1.0, max_iter=50, tol=1e-10)
    assert_allclose(result.theta, [0.0, 0.5], atol=1e-8)


def test_the_exact_solver_backs_off_where_the_value_is_not_finite():
    def barrier(theta):
        x = float(theta[0])
        return Point(np.log(1 - x) + 3 * x, np.array([3 - 1 / (1 - x)])) if x < 1 else Point(-np.inf, np.zeros(1))

    result = lbfgs(barrier, np.full(1, -20.0), bound=np.inf, max_iter=100, tol=1e-9)
    assert result.converged
    assert_allclose(result.theta, 2 / 3, rtol=1e-8)
    assert never_falls(result.history.objective)


def test_the_exact_solver_refuses_a_start_that_is_not_finite():
    with pytest.raises(ValueError, match="the objective is not finite at the start"):
        lbfgs(lambda theta: Point(-np.inf, theta), np.zeros(2), bound=1.0, max_iter=5, tol=1e-6)


def test_the_exact_solver_stops_at_once_at_the_optimum():
    bowl = Bowl([1.0], [0.0])
    result = lbfgs(bowl, np.zeros(1), bound=1.0, max_iter=5, tol=1e-6)
    assert result.converged
    assert len(bowl.seen) == 1
    assert result.history.iteration.tolist() == [0]


def test_the_exact_solver_never_hangs_where_there_is_no_top():
    result = lbfgs(lambda theta: Point(float(theta[0]), np.ones(1)), np.zeros(1), bound=np.inf, max_iter=30, tol=1e-6)
    assert not result.converged
    assert result.history.iteration[-1] <= 30


@pytest.mark.parametrize("size", [0.0, 1e12])
@pytest.mark.parametrize(("tol", "bend"), [(1e-3, 1e4), (1e-6, 1e8)])
def test_a_rise_without_end_is_no_optimum(size, tol, bend):
    def slope(theta):
        return Point(float(theta[0] - bend * theta[1] ** 2), np.array([1.0, -2.0 * bend * theta[1]]))

    result = lbfgs(slope, np.array([size, 1.0]), bound=np.inf, max_iter=30, tol=tol)
    assert not result.converged
    assert result.move[0] > tol


@pytest.mark.parametrize("seed", [13, 80])
def test_a_weak_direction_does_not_hide_behind_strong_ones(seed):
    rng = np.random.default_rng(seed)
    d, tol = int(rng.choice([1, 2, 5, 10, 30, 60])), 1e-3
    axes, _ = np.linalg.qr(rng.normal(size=(d, d)))
    bend = (axes * 10.0 ** rng.uniform(-5, 2, size=d)) @ axes.T
    top = rng.normal(size=d) * 10 ** rng.uniform(-1, 2)

    def bowl(theta):
        fall = bend @ (theta - top)
        return Point(-0.5 * float((theta - top) @ fall), -fall)

    result = lbfgs(bowl, np.zeros(d), bound=np.inf, max_iter=500, tol=tol)
    assert result.converged
    assert (np.abs(result.theta - top) <= 1.5 * tol * np.maximum(1.0, np.abs(top))).all()


def test_the_exact_solver_finds_the_top_in_a_box_that_cuts_its_steps():
    for seed in range(200):  # a step cut off by the box may lead down
        rng = generator(seed)
        table, wanted = rng.normal(size=(8, 8)) * 10.0 ** rng.uniform(-2, 1, size=8), 3.0 * rng.normal(size=8)

        def fit(theta, table=table, wanted=wanted):
            gap = wanted - table @ theta
            return Point(-0.5 * float(gap @ gap), table.T @ gap)

        result = lbfgs(fit, np.zeros(8), bound=1.0, max_iter=500, tol=1e-8)
        best = fit(lsq_linear(table, wanted, (-1, 1), method="bvls", tol=1e-14).x)
        assert result.converged
        assert result.point.value >= best.value - 1e-10 * (1.0 + abs(best.value))


def test_the_exact_solver_does_not_trust_a_gradient_that_lies():
    result = lbfgs(lambda theta: Point(-float(theta @ theta), 2 * theta + 1), np.ones(2), bound=9.0, max_iter=30, tol=0)
    assert not result.converged
    assert result.reason == "no step increases the objective any more: rounding is reached"


def test_history_counts_every_evaluation():
    bowl = Bowl([1.0, 50.0], [1.0, 2.0])
    result = lbfgs(bowl, np.zeros(2), bound=10.0, max_iter=50, tol=1e-8)
    assert result.history.evaluations[-1] == len(bowl.seen)
    assert result.history.dtype.names == ("iteration", "objective", "theta_norm", "gradient_norm", "evaluations")


@pytest.mark.parametrize("solver", [lbfgs, lambda *given, **named: paper(*given, step_size=0.1, **named)])
def test_the_callback_stops_either_solver(solver):
    result = solver(
        Bowl([1.0, 5.0], [3.0, 1.0]),
        np.zeros(2),
        bound=9.0,
        max_iter=50,
        tol=1e-12,
        callback=lambda state: state["iteration"] == 3,
    )
    assert result.history.iteration[-1] == 3
    assert result.reason == "the callback asked to stop"


def test_the_projected_gradient_is_what_is_left_inside_the_box():
    theta = np.array([1.0, -1.0, 0.5, 1.0])
    assert projected_norm(theta, np.array([9.0, -9.0, 0.0, 0.0]), 1.0) == 0.0
    assert projected_norm(theta, np.array([9.0, 0.25, 0.1, 0.0]), 1.0) == 0.25
    assert projected_norm(theta, np.array([-9.0, 0.0, 0.0, 0.0]), 1.0) == 2.0
    assert projected_norm(theta, np.array([-9.0, 0.0, 0.0, 0.0]), np.inf) == 9.0


# ------------------------------------------------------------ rough fits


class Cliff:
    """Σ log θ_j − θ_j/20: very steep near 0, beyond which it is −inf, and flat at its top, where every θ_j is 20."""

    def __call__(self, theta):
        if theta.min() <= 0.0:
            return Point(-np.inf, np.zeros_like(theta))
        return Point(float(np.sum(np.log(theta) - theta / 20)), 1 / theta - 1 / 20)


@pytest.mark.parametrize("d", [1, 3, 30])
def test_a_rough_fit_does_not_take_the_steepness_of_its_start_for_that_of_the_top(d):
    result = lbfgs(Cliff(), np.full(d, 1e-3), bound=100.0, max_iter=500, tol=3e-3, confirm_by_newton=False)
    assert result.converged
    assert_allclose(result.theta, 20.0, rtol=1e-2)


def test_a_rough_fit_of_few_weights_is_not_held_on_a_ridge_that_all_its_steps_went_across():
    found = case("goals", by_state=False, seed=0)
    some = (trajectories_of(data) for data in (found.expert, found.others))
    bench = CandidateFitter(mdp_of(found.problem), *some, yardstick=CompleteGraph(), theta_max=6.0, tol=1e-3)
    strong = Candidate("Complete", 10.0)
    objective = bench.likelihood(strong).penalised(bench.penalty(strong))
    begin = initial_theta(bench.mdp, objective, 6.0)
    exact = lbfgs(objective, begin, bound=6.0, max_iter=500, tol=1e-8, unit=objective.unit)
    assert_allclose(bench.fit(strong) * objective.unit, exact.theta * objective.unit, atol=5e-3)


# ------------------------------------------------------------ a curvature that is known


def test_with_the_curvature_known_a_bowl_takes_one_step():
    random = generator(71)
    for d in (1, 5, 40):
        roots = random.normal(size=(d, d))
        bend, top = roots @ roots.T + 0.1 * np.eye(d), random.normal(size=d)
        bowl = lambda t, bend=bend, top=top: Point(-0.5 * (t - top) @ bend @ (t - top), -bend @ (t - top))  # noqa: E731
        result = lbfgs(bowl, np.zeros(d), bound=np.inf, max_iter=50, tol=1e-6, confirm_by_newton=False, curvature=bend)
        assert result.converged
        assert len(result.history) <= 3
        assert_allclose(result.theta, top, atol=1e-6)


@pytest.mark.parametrize("certain", [True, False])
def test_a_wrong_curvature_costs_steps_and_no_more(certain):
    random = generator(72)
    for _ in range(50):
        d = int(random.integers(1, 40))
        roots, other = random.normal(size=(2, d, d))
        bend, top = roots @ roots.T + 0.1 * np.eye(d), random.normal(size=d)
        bound = random.choice([0.5, np.inf])
        told = (other + other.T) * random.choice([1e-6, 1.0, 1e6])  # neither right nor positive
        bowl = lambda t, bend=bend, top=top: Point(-0.5 * (t - top) @ bend @ (t - top), -bend @ (t - top))  # noqa: E731
        result = lbfgs(
            bowl, np.zeros(d), bound=bound, max_iter=2000, tol=1e-6, confirm_by_newton=certain, curvature=told
        )
        exact = lbfgs(bowl, np.zeros(d), bound=bound, max_iter=2000, tol=1e-9)
        assert_allclose(result.point.value, exact.point.value, atol=1e-6, rtol=1e-6)
