"""Searches at discount 1 whose optimum is close to where values stop being finite, against a dense barrier method."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse.csgraph import connected_components, dijkstra
from seeds import generator

from messirl import MDP, MESSI, MaxEntIRL, Trajectories, read_problem, sample, soft_policy
from messirl.estimators import SeveralExperts, _central_path
from messirl.objective import Objective
from messirl.optim.lbfgs import lbfgs
from messirl.planning import NoFiniteValue

quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning")


def walled_boards(rng, boards, side=4):
    """Boards of cells with random walls, each with a goal cell: moves (S, 4, S), features (S, 4), and the goals."""
    n = side * side
    moves, features, goals = np.zeros((boards * n, 4, boards * n)), [], []
    for board in range(boards):
        where = np.array([divmod(s, side) for s in range(n)])
        near = np.abs(where[:, None] - where[None]).sum(axis=2) == 1
        while True:
            walls = np.triu(rng.random((n, n)) < 0.35)
            linked = near & ~(walls | walls.T)
            if connected_components(linked)[0] == 1:
                break
        goal = int(rng.integers(n))
        goals.append(board * n + goal)
        away = dijkstra(linked.astype(float), unweighted=True, indices=goal)
        for s, to in zip(*np.nonzero(linked), strict=True):
            action = [(-1, 0), (1, 0), (0, -1), (0, 1)].index(tuple(where[to] - where[s]))
            if s != goal:
                moves[board * n + s, action, board * n + to] = 1.0
        dead_end = linked.sum(axis=1) == 1
        features.append(np.column_stack([np.ones(n), away / 5, dead_end, rng.random(n)]))
    return moves, np.concatenate(features), np.array(goals)


def near_the_edge(seed, *, with_goals):
    """A problem at discount 1 whose experts wander so much that values are hardly finite, and where they start."""
    rng = generator(seed)
    moves, features, goals = walled_boards(rng, int(rng.integers(1, 4)))
    terminal = np.zeros(len(features), dtype=bool)
    terminal[goals] = not with_goals
    mdp = MDP(moves, features, discount=1.0, terminal=terminal)
    theta = rng.normal(size=4) * [0.0, 1.0, 1.0, 0.5]
    for cost in -np.geomspace(0.05, 20.0, 60):  # the least cost of a step for which there are values
        theta[0] = cost
        try:
            policies = {
                goal: soft_policy(mdp, mdp.reward(theta), goal=int(goal) if with_goals else None) for goal in goals
            }
            break
        except NoFiniteValue:
            continue
    start = rng.random(len(features)) * (rng.random(len(features)) < 0.3)
    board = np.arange(len(features)) // 16
    trips = []
    for goal, policy in policies.items():
        own = start * (board == goal // 16)
        own[goal] = 0.0
        if own.any():
            towards = {"goal": int(goal)} if with_goals else {}
            some = sample(mdp, policy, 6, start=own, random_state=int(rng.integers(2**31)), **towards)
            trips += [some.states[a:b].tolist() for a, b in zip(some.offsets, some.offsets[1:], strict=False)]
    trips = [trip for trip in trips if len(trip) > 1]
    expert = Trajectories.from_lists(trips, goals=[trip[-1] for trip in trips] if with_goals else None)
    return mdp, expert


class Dense:
    """The log-likelihood of complete trips and −log det(I − M), with both derivatives, by dense linear algebra."""

    def __init__(self, mdp, expert, ridge):
        self.ridge, self.features = ridge, mdp.features
        arrive = np.asarray(mdp.transitions.todense()).reshape(mdp.n_states, mdp.n_actions, -1).sum(axis=1)
        goals = expert.goals if expert.goals is not None else np.where(mdp.terminal)[0][[0] * len(expert)]
        self.target = np.zeros(mdp.n_features)
        self.systems = []
        for goal in np.unique(goals):
            mine = np.flatnonzero(goals == goal)
            ends = mdp.terminal if expert.goals is None else np.arange(mdp.n_states) == goal
            graph = arrive * ~ends[:, None]
            first = expert.first[mine]
            met = np.isfinite(dijkstra(graph, unweighted=True, indices=first)).any(axis=0)
            met &= np.isfinite(dijkstra(graph.T, unweighted=True, indices=np.flatnonzero(ends))).any(axis=0)
            inner, last = np.flatnonzero(met & ~ends), np.flatnonzero(met & ends)
            number = {int(s): k for k, s in enumerate(inner)}
            begins = np.array([number[int(s)] for s in first])
            self.systems.append((graph[np.ix_(inner, inner)], graph[np.ix_(inner, last)], inner, last, begins))
        owner = np.repeat(np.arange(len(expert)), expert.lengths)
        self.target = self.features[expert.states].sum(axis=0) / (owner[-1] + 1)
        self.n = len(expert)

    def __call__(self, theta):
        d = theta.size
        value, gradient = self.target @ theta - 0.5 * self.ridge * theta @ theta, self.target - self.ridge * theta
        hessian = -self.ridge * np.eye(d)
        barrier, slope, bend = 0.0, np.zeros(d), np.zeros((d, d))
        for between, ending, inner, last, begins in self.systems:
            own, end = self.features[inner], self.features[last]
            m = np.exp(own @ theta)[:, None] * between
            if np.abs(np.linalg.eigvals(m)).max() >= 1.0:
                return None
            inverse = np.linalg.inv(np.eye(len(inner)) - m)
            flow = np.exp(own @ theta)[:, None] * ending * np.exp(end @ theta)
            z = inverse @ flow.sum(axis=1)
            # ∂z = G (∂M z + ∂b), with ∂M = diag(f_j) M; and once more for ∂²z.
            first = [inverse @ (own[:, j] * z + flow @ end[:, j]) for j in range(d)]
            jac = np.column_stack(first)
            often = np.bincount(begins, minlength=len(inner)) / self.n
            value -= often @ np.log(z)
            gradient = gradient - (often / z) @ jac
            row = (often / z) @ inverse
            second = np.zeros((d, d))
            for j in range(d):
                for k in range(d):
                    # of z = M z + b:  M_jk z + M_j z_k + M_k z_j + b_jk, where M_j z_k = f_j (z_k − b_k)
                    arrive_j, arrive_k = flow @ end[:, j], flow @ end[:, k]
                    ahead_k, ahead_j = m @ jac[:, k], m @ jac[:, j]
                    again = own[:, j] * own[:, k] * z + own[:, j] * arrive_k + own[:, k] * arrive_j
                    again += flow @ (end[:, j] * end[:, k]) + own[:, j] * ahead_k + own[:, k] * ahead_j
                    second[j, k] = row @ again
            hessian -= second - jac.T @ np.diag(often / z**2) @ jac
            moved = inverse @ m
            barrier -= np.linalg.slogdet(np.eye(len(inner)) - m)[1]
            slope = slope + own.T @ np.diag(moved)
            bend += own.T @ (np.diag(np.diag(moved)) + moved * moved.T) @ own
        return value, gradient, hessian, barrier, slope, bend

    def maximum(self, theta):
        """The largest value, by Newton's method on the path of the log-det barrier."""
        found = self(theta)
        for weight in 10.0 ** np.arange(0, -14, -1.0):
            for _ in range(200):
                value, gradient, hessian, barrier, slope, bend = found
                up, curve = gradient - weight * slope, weight * bend - hessian
                step = np.linalg.lstsq(curve, up, rcond=1e-14)[0]
                if up @ step < 1e-3 * weight:
                    break
                length = 1.0
                while length > 1e-14:
                    there = self(theta + length * step)
                    if there is not None and there[0] - weight * there[3] > value - weight * barrier:
                        theta, found = theta + length * step, there
                        break
                    length *= 0.5
                else:
                    break
        return found[0]


@quiet
@pytest.mark.parametrize("with_goals", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_every_start_leads_to_the_optimum_of_a_dense_method(seed, with_goals):
    mdp, expert = near_the_edge(seed, with_goals=with_goals)
    wanted = Dense(mdp, expert, 1e-3).maximum(np.array([-3.0, 0.0, 0.0, 0.0]))
    for begin in (None, -1.5, -4.0, -12.0):
        start = None if begin is None else [begin, 0.0, 0.0, 0.0]
        model = MaxEntIRL(theta_max=None, ridge=1e-3, theta_init=start).fit(mdp, expert)
        assert model.converged_, model.termination_
        assert_allclose(model.objective_, wanted, rtol=1e-8)
        assert model.history_.evaluations[-1] <= 300


def test_the_dense_method_has_the_derivatives_it_says():
    mdp, expert = near_the_edge(0, with_goals=True)
    dense, theta = Dense(mdp, expert, 1e-3), np.array([-3.0, 0.1, -0.2, 0.3])
    _, gradient, hessian, _, slope, bend = dense(theta)
    for j in range(4):
        step = 1e-5 * np.eye(4)[j]
        ahead, behind = dense(theta + step), dense(theta - step)
        assert_allclose((ahead[0] - behind[0]) / 2e-5, gradient[j], rtol=1e-5, atol=1e-7)
        assert_allclose((ahead[1] - behind[1]) / 2e-5, hessian[j], rtol=1e-5, atol=1e-7)
        assert_allclose((ahead[3] - behind[3]) / 2e-5, slope[j], rtol=1e-5, atol=1e-7)
        assert_allclose((ahead[4] - behind[4]) / 2e-5, bend[j], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("with_goals", [False, True])
def test_a_barrier_is_least_where_it_was_made_and_has_exact_derivatives(with_goals):
    mdp, expert = near_the_edge(3, with_goals=with_goals)
    objective = Objective.from_trajectories(mdp, expert, objective="choices")
    centre, theta = np.array([-4.0, 0.1, 0.0, 0.2]), np.array([-3.5, -0.1, 0.2, 0.0])
    guarded = objective.minus_barrier(objective.barrier(centre), 0.7)
    assert_allclose(guarded(centre).gradient, objective(centre).gradient, rtol=1e-8, atol=1e-10)
    fall = objective(theta).value - guarded(theta).value - (objective(centre).value - guarded(centre).value)
    assert fall > 0.0
    for j in range(4):
        step = 1e-5 * np.eye(4)[j]
        ahead, behind = guarded(theta + step), guarded(theta - step)
        assert_allclose((ahead.value - behind.value) / 2e-5, guarded(theta).gradient[j], rtol=1e-5, atol=1e-7)
        assert_allclose((ahead.gradient - behind.gradient) / 2e-5, guarded.hessian(theta)[j], rtol=1e-5, atol=1e-6)


@quiet
def test_without_the_path_a_search_stops_short_of_the_optimum(monkeypatch):
    short = 0
    for seed in range(6):
        mdp, expert = near_the_edge(seed, with_goals=False)
        objective = Objective.from_trajectories(mdp, expert, objective="choices", quadratic=1e-3 * np.eye(4))
        begin = np.array([-4.0, 0.0, 0.0, 0.0])
        options = {"bound": np.inf, "max_iter": 500, "tol": 1e-6, "unit": objective.unit, "scale": objective.scale}
        alone = lbfgs(objective, begin, patience=_central_path.PATIENCE, **options)
        model = MaxEntIRL(theta_max=None, ridge=1e-3, theta_init=begin).fit(mdp, expert)
        short += alone.point.value < model.objective_ - 1e-4
    assert short > 0


@quiet
def test_a_callback_hears_of_the_path_and_may_stop_it():
    mdp, expert = near_the_edge(1, with_goals=False)
    model, seen = MaxEntIRL(theta_max=None, ridge=1e-3, theta_init=[-12.0, 0.0, 0.0, 0.0]), []

    model.set_params(callback=lambda state: seen.append(state["evaluations"])).fit(mdp, expert)
    assert model.converged_
    assert seen == sorted(seen)
    most = len(seen) // 2

    def stop(state):
        seen.append(state["evaluations"])
        return len(seen) == most

    seen.clear()
    model.set_params(callback=stop).fit(mdp, expert)
    assert model.termination_ == "the callback asked to stop"
    assert len(seen) == most


@quiet
@pytest.mark.parametrize("seed", [1, 3, 6])
def test_a_path_that_is_cut_short_reports_where_it_ended(seed):
    mdp, expert = near_the_edge(seed, with_goals=False)
    seen = []
    model = MaxEntIRL(theta_max=None, ridge=1e-3, theta_init=[-12.0, 0.0, 0.0, 0.0], max_iter=12)
    model.set_params(callback=lambda state: seen.append(state["iteration"])).fit(mdp, expert)
    objective = Objective.from_trajectories(mdp, expert, objective="choices", quadratic=1e-3 * np.eye(4))
    assert_allclose(model.objective_, objective(model.theta_).value, rtol=1e-9)
    assert model.n_iter_ <= 12
    assert seen == model.history_.iteration.tolist()


@quiet
def test_a_group_of_several_experts_follows_the_path_too():
    mdp, expert = near_the_edge(0, with_goals=False)
    options = {"lambda0": 0.0, "theta_prior": 30.0, "theta_init": [-12.0, 0.0, 0.0, 0.0]}
    several, one = SeveralExperts(**options).fit(mdp, expert), MESSI(**options).fit(mdp, expert)
    assert_allclose(several.objective_, one.objective_, rtol=1e-8)


@quiet
def test_separation_far_out_on_the_path_is_not_called_converged():
    mdp, expert = near_the_edge(3, with_goals=True)
    assert not MaxEntIRL(theta_max=None, theta_init=[-12.0, 0.0, 0.0, 0.0]).fit(mdp, expert).converged_


DATA = Path(os.environ.get("MESSIRL_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
COTHI = DATA / "cothi_mazes"


@pytest.mark.skipif(not COTHI.is_dir(), reason="no cothi_mazes: set MESSIRL_DATA to the folder that holds it")
@pytest.mark.parametrize("method", [MaxEntIRL(), MaxEntIRL(theta_max=None), MaxEntIRL(ridge=1e-3), MESSI()])
def test_mazes_with_a_rarely_visited_cycle_are_fitted_from_any_start(method):
    problem = read_problem(COTHI)
    expert = problem.select("role = expert and trial = 1").trajectories
    optimum = -8.292281 if method.get_params().get("ridge") == 0.0 else None
    for cost in (None, -1.5, -3.0, -6.0):
        method.set_params(theta_init=None if cost is None else [cost, *[0.0] * 8])
        model = method.fit(problem.mdp, expert)
        optimum = model.objective_ if optimum is None else optimum
        assert model.converged_
        assert model.objective_ == pytest.approx(optimum, abs=1e-6)
        assert model.history_.evaluations[-1] <= 300


@pytest.mark.parametrize("seed", [131, 194, 209])
def test_the_objective_of_a_fit_is_that_of_its_weights_also_where_there_is_no_optimum(seed):
    """With few trajectories weights may grow for ever: the last search makes no step from where one before ended."""
    side = 5
    at = np.array([(i % side, i // side) for i in range(side * side)])
    moves = np.zeros((side * side, 4, side * side))
    for s, (x, y) in enumerate(at):
        for a, (dx, dy) in enumerate(((1, 0), (-1, 0), (0, 1), (0, -1))):
            moves[s, a, min(max(x + dx, 0), side - 1) + side * min(max(y + dy, 0), side - 1)] = 1.0
    near = [np.linalg.norm(at - mark, axis=1) / side for mark in ((3, 3), (1, 1))]
    features = np.column_stack([np.random.default_rng(seed).random((25, 3)).round(1), *near, np.ones(25)])
    start = np.append(np.full(24, 1 / 24), 0.0)
    mdp = MDP(moves, features, discount=1.0, terminal=np.arange(25) == 24, start=start)
    policy = soft_policy(mdp, mdp.reward(np.array([0.0, 0.0, -1.0, -2.0, 0.5, -2.2])))
    seen = sample(mdp, policy, 4, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MaxEntIRL(theta_max=None).fit(mdp, seen)
    likelihood = model.score(seen) * (seen.lengths - 1).sum() / len(seen)
    assert_allclose(model.objective_, likelihood, rtol=1e-9, atol=1e-9)
    assert_allclose(model.history_.objective[-1], likelihood, rtol=1e-9, atol=1e-9)
    assert not model.converged_
