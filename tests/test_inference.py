"""Curvature, standard errors, tests and predictions of fitted models."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2
from seeds import generator, shifted
from worlds import to_rounding

from messirl import (
    MDP,
    MESSI,
    MaxEntIRL,
    Trajectories,
    estimation_table,
    expected_flows,
    likelihood_ratio_test,
    next_state_accuracy,
    sample,
    soft_policy,
)
from messirl.objective import Objective
from messirl.planning.planner import start_values
from messirl.planning.value_derivatives import value_gradients
from messirl.similarity import RBF
from tests.roads import NAMES, TRUTH, network, trips


def small(seed: int, *, state_action: bool, horizon: int | None, discount: float) -> tuple[MDP, Trajectories]:
    """A slippery problem with one forbidden action and a terminal state, and trajectories of its soft policy."""
    rng = generator(seed)
    moves = rng.dirichlet(np.ones(5), size=(5, 3))
    moves[0, 1] = 0.0
    features = rng.normal(size=(5, 3, 3) if state_action else (5, 3)) - (2.0 if horizon is None else 0.0)
    terminal = np.arange(5) == 4
    mdp = MDP(moves, features, discount=discount, horizon=horizon, terminal=terminal, start=[0.5, 0.5, 0, 0, 0])
    policy = soft_policy(mdp, mdp.reward(np.full(3, 0.3)))
    return mdp, sample(mdp, policy, 25, None if horizon is None else horizon, random_state=shifted(seed))


def slopes(objective: Objective, theta: np.ndarray, step: float) -> np.ndarray:
    ahead = np.array([objective(theta + step * e).gradient for e in np.eye(theta.size)])
    behind = np.array([objective(theta - step * e).gradient for e in np.eye(theta.size)])
    return (ahead - behind) / (2 * step)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("discount", [0.9, 1.0])
@pytest.mark.parametrize("horizon", [None, 6])
@pytest.mark.parametrize("state_action", [False, True])
def test_the_hessian_is_the_derivative_of_the_gradient(seed, discount, horizon, state_action):
    mdp, expert = small(seed, state_action=state_action, horizon=horizon, discount=discount)
    objective = Objective.from_trajectories(mdp, expert, quadratic=np.diag([1.0, 2.0, 3.0]))
    theta, step = np.full(3, 0.3), 1e-5
    rows = [
        (objective(theta + step * e).gradient - objective(theta - step * e).gradient) / (2 * step) for e in np.eye(3)
    ]
    assert_allclose(objective.hessian(theta), rows, atol=1e-7)


def test_the_hessian_of_trips_and_of_the_noncausal_model_is_the_derivative_too():
    mdp = network()
    objective = Objective.from_trajectories(mdp, trips(mdp, 20, 0))
    step = 1e-4
    rows = [
        (objective(TRUTH + step * e).gradient - objective(TRUTH - step * e).gradient) / (2 * step) for e in np.eye(3)
    ]
    assert_allclose(objective.hessian(TRUTH), rows, rtol=1e-5, atol=1e-6)
    mdp, expert = small(0, state_action=False, horizon=5, discount=1.0)
    noncausal = Objective.from_trajectories(mdp, expert, "noncausal").hessian(np.zeros(3))
    assert_allclose(noncausal, noncausal.T)
    assert np.linalg.eigvalsh(noncausal).max() < 1e-8  # concave


@pytest.mark.parametrize("horizon", [None, 6])
def test_value_gradients_are_those_of_the_start_values(horizon):
    mdp, expert = small(1, state_action=True, horizon=horizon, discount=0.9)
    theta, step = np.full(3, 0.3), 1e-6
    rows = [
        start_values(mdp, mdp.reward(theta + step * e), "causal", expert)
        - start_values(mdp, mdp.reward(theta - step * e), "causal", expert)
        for e in np.eye(3)
    ]
    assert_allclose(value_gradients(mdp, theta, "causal", expert), np.array(rows).T / (2 * step), atol=1e-7)


def test_both_standard_errors_agree_where_the_model_is_right_and_trips_are_many():
    mdp = network()
    expert = trips(mdp, 4000, 3)
    table = estimation_table(MaxEntIRL(theta_max=None).fit(mdp, expert), expert)
    assert_allclose(table.robust_std_error, table.std_error, rtol=0.1)
    assert np.all(np.abs(table.estimate - TRUTH) < 4 * table.std_error)
    assert_allclose(table.t, table.estimate / table.std_error)
    assert table.names == tuple(NAMES)
    assert np.all(table.p < 1e-3)
    assert_allclose(table.aic, 6 - 2 * table.log_likelihood)
    assert_allclose(table.bic, 3 * np.log(4000) - 2 * table.log_likelihood)
    text = str(table)
    assert all(word in text for word in ("time", "robust se", "log-likelihood", "4000 trajectories"))


def test_the_log_likelihood_of_the_table_is_n_times_the_objective_of_trips():
    mdp = network()
    expert = trips(mdp, 200, 5)
    model = MaxEntIRL(theta_max=None).fit(mdp, expert)
    assert_allclose(estimation_table(model, expert).log_likelihood, 200 * model.objective_, rtol=1e-9)


def test_what_is_not_identified_has_no_standard_error():
    mdp = network()
    twice = np.concatenate([mdp.features, mdp.features[:, :, :1]], axis=2)
    mdp = mdp.replace(features=twice, feature_names=["time", "turn", "const", "time again"])
    expert = trips(network(), 200, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MaxEntIRL(theta_max=None).fit(mdp, expert)
    table = estimation_table(model, expert)
    assert np.isnan(table.std_error[[0, 3]]).all()
    assert np.isfinite(table.std_error[[1, 2]]).all()
    assert table.n_parameters == 3


@pytest.mark.filterwarnings("ignore::messirl.IdentifiabilityWarning")
@pytest.mark.parametrize("horizon", [None, 6])
def test_a_feature_that_is_the_same_everywhere_changes_nothing_of_the_table_but_its_own_row(horizon):
    rng = generator(3)
    mdp = MDP(rng.dirichlet(np.ones(4), size=(4, 2)), rng.normal(size=(4, 2)), discount=0.9, horizon=horizon)
    anything = np.full(mdp.policy_shape, 0.5)
    expert = sample(mdp, anything, 12, horizon or 150, random_state=0, start=np.full(4, 0.25))
    more = mdp.replace(features=np.column_stack([mdp.features, np.full(4, 3.0)]))
    for kind in ({"objective": "choices"}, {"objective": "counts"}, {"ridge": 0.1}):
        model = MaxEntIRL(**kind).fit(more, expert)
        plain, table = estimation_table(MaxEntIRL(**kind).fit(mdp, expert), expert), estimation_table(model, expert)
        assert_allclose(table.robust_std_error[:2], plain.robust_std_error, rtol=1e-5)
        assert np.isnan(table.robust_std_error[2])
        if "ridge" not in kind:
            assert np.isnan(table.std_error[2])
            assert table.n_parameters == plain.n_parameters
    full, small = MaxEntIRL().fit(more, expert), MaxEntIRL().fit(mdp, expert)
    with pytest.raises(ValueError, match="change no trajectory's probability, so there is nothing to test"):
        likelihood_ratio_test(small, full, expert)


def test_what_lies_on_the_bound_has_no_standard_error():
    mdp = network()
    expert = trips(mdp, 400, 0)
    model = MaxEntIRL(theta_max=1.2, theta_init=[-1.2, -1.2, -1.2]).fit(mdp, expert)
    table = estimation_table(model, expert)
    assert abs(model.theta_[0]) == 1.2
    assert np.isnan(table.std_error[0])
    assert np.isfinite(table.std_error[1])


@pytest.mark.filterwarnings("ignore::messirl.inference.FewClustersWarning")
@pytest.mark.parametrize("seed", range(3))
def test_equal_trajectories_say_nothing_about_the_robust_error(seed):
    mdp, expert = small(seed, state_action=False, horizon=6, discount=0.9)
    expert = expert[[0, 0, 0]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one path may run along an edge
        model = MaxEntIRL(theta_max=1.0).fit(mdp, expert)
    table = estimation_table(model, expert)
    assert np.isnan(table.robust_std_error).all()
    assert np.isnan(table.p).all()
    str(table)


def test_a_table_for_other_trajectories_is_refused():
    mdp = network()
    model = MaxEntIRL(theta_max=None).fit(mdp, trips(mdp, 100, 0))
    with pytest.raises(ValueError, match="other trajectories than the model was fitted to"):
        estimation_table(model, trips(mdp, 100, 1))
    with pytest.raises(ValueError, match="at least two"):
        estimation_table(model, trips(mdp, 100, 0)[:1])


@to_rounding
def test_a_ratio_test_finds_what_matters_and_only_that():
    mdp = network()
    rng = generator(0)
    noise = np.where(mdp.allowed[:, :, None], rng.uniform(size=(25, 4, 1)), 0.0)
    larger = mdp.replace(features=np.concatenate([mdp.features, noise], axis=2), feature_names=[*NAMES, "noise"])
    expert = trips(mdp, 500, 2)
    full = MaxEntIRL(theta_max=None, tol=1e-8).fit(mdp, expert)
    beyond = MaxEntIRL(theta_max=None, tol=1e-8).fit(larger, expert)
    without = mdp.replace(features=mdp.features[:, :, [0, 2]], feature_names=["time", "const"])
    fewer = MaxEntIRL(theta_max=None, tol=1e-8).fit(without, expert)
    found = likelihood_ratio_test(fewer, full, expert)
    assert found.degrees == 1
    assert_allclose(found.statistic, 2 * 500 * (full.objective_ - fewer.objective_), rtol=1e-6)
    assert_allclose(found.p, chi2.sf(found.statistic, 1))
    assert found.p < 1e-6
    assert likelihood_ratio_test(full, beyond, expert).p > 0.01
    with pytest.raises(ValueError, match="give the restricted one first"):
        likelihood_ratio_test(full, fewer, expert)
    ridge = MaxEntIRL(ridge=0.1, theta_max=None).fit(mdp, expert)
    with pytest.raises(ValueError, match="unpenalised"):
        likelihood_ratio_test(fewer, ridge, expert)
    held = MaxEntIRL(theta_max=1.0).fit(mdp, expert)
    with pytest.raises(ValueError, match=r"at the bound theta_max \('time'.*raise theta_max"):
        likelihood_ratio_test(fewer, held, expert)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of some draws there is no optimum
def test_a_ratio_test_is_refused_where_the_objective_is_no_likelihood():
    mdp, expert = small(0, state_action=True, horizon=None, discount=0.9)
    model = MaxEntIRL(objective="counts", theta_max=None).fit(mdp, expert)
    with pytest.raises(ValueError, match="deterministic transitions, discount=1 and the trajectories' own start"):
        likelihood_ratio_test(model, model, expert)


def test_a_ratio_test_of_counts_is_refused_with_a_start_that_is_not_the_trajectories_own():
    """Then θᵀf* − Σ start V is no log-likelihood, though moves are certain and γ = 1. That of choices has no start."""
    moves = np.zeros((4, 2, 4))
    moves[[0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 0, 1], [1, 2, 2, 3, 3, 1]] = 1.0
    features = np.zeros((4, 2, 2))
    features[..., 0], features[1, 1, 1] = -1.0, 1.0  # every step costs something; one way out may be liked or not
    mdp = MDP(moves, features, discount=1.0, terminal=np.arange(4) == 3)
    walks = [[0, 1, 3]] * 2 + [[0, 1, 2, 3]] * 7 + [[0, 2, 3]] * 5 + [[0, 2, 1, 3]] * 2 + [[1, 3]] + [[1, 2, 3]] * 3
    expert, own = Trajectories.from_lists(walks), np.array([0.8, 0.2, 0.0, 0.0])

    def ratio(objective, start):
        full = mdp.replace(start=start)
        models = (
            MaxEntIRL(objective=objective, theta_max=None, tol=1e-9).fit(one, expert)
            for one in (full.replace(features=features[..., :1]), full)
        )
        return likelihood_ratio_test(*models, expert).statistic

    wanted = ratio("choices", None)
    assert wanted > 0.1
    for objective, start in (("counts", None), ("counts", own), ("choices", 0.5 * own + 0.25 * (own > 0))):
        assert ratio(objective, start) == pytest.approx(wanted, rel=1e-6)
    with pytest.raises(ValueError, match="the trajectories' own start"):
        ratio("counts", 0.5 * own + 0.25 * (own > 0))


@to_rounding
def test_flows_at_the_optimum_have_the_features_of_the_trips():
    mdp = network()
    expert = trips(mdp, 300, 1)
    model = MaxEntIRL(theta_max=None, tol=1e-9).fit(mdp, expert)
    flows = expected_flows(model, expert)
    assert_allclose(flows.counts(mdp), 300 * model.feature_counts_, rtol=1e-8)
    some = expert[expert.goals == expert.goals[0]]
    one = expected_flows(model, some)
    start = np.bincount(some.first, minlength=25) / len(some)
    drawn = sample(
        mdp, model.policy_[int(some.goals[0])], 20_000, random_state=shifted(0), goal=int(some.goals[0]), start=start
    )
    seen = np.bincount(drawn.states, minlength=25) * len(some) / 20_000
    assert_allclose(one.states, seen, atol=0.05 * len(some))


def test_flows_without_goals_are_the_visits_of_the_model():
    mdp, expert = small(2, state_action=False, horizon=None, discount=0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MESSI(RBF(1.0)).fit(mdp.replace(start=None), expert)
    flows = expected_flows(model, expert)
    assert_allclose(flows.states, len(expert) * model.visitation_, rtol=1e-8)
    assert_allclose(flows.steps.sum(axis=1)[:4], flows.states[:4], rtol=1e-8)


def test_accuracy_is_the_share_of_most_likely_moves():
    mdp = network()
    expert = trips(mdp, 50, 1)
    model = MaxEntIRL(theta_max=None, ridge=0.01).fit(mdp, expert)  # the fifty may all go the shortest way
    hits = steps = 0
    for states, _, goal in expert:
        policy = model.policy_[goal]
        for s, entered in itertools.pairwise(states):
            chance = np.zeros(25)
            for a in range(4):
                chance += policy[s, a] * mdp.transitions[[s * 4 + a]].toarray()[0]
            hits += int(entered == np.argmax(chance))
            steps += 1
    assert_allclose(next_state_accuracy(model, expert), hits / steps)


def test_ties_share_a_hit():
    moves = np.zeros((3, 2, 3))
    moves[0, 0, 1] = moves[0, 1, 2] = 1.0
    mdp = MDP(moves, np.zeros((3, 1)), discount=1.0, terminal=[False, True, True])
    expert = Trajectories.from_lists([[0, 1], [0, 1], [0, 2]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MaxEntIRL().fit(mdp, expert)
    assert next_state_accuracy(model, expert) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="make no step"):
        next_state_accuracy(model, Trajectories.from_lists([[1]]))


def test_a_start_without_finite_value_names_the_features_to_make_negative():
    mdp = network()
    with pytest.raises(ValueError, match=r"no finite value.*make the weights of .*'const'.* more negative"):
        MaxEntIRL(theta_init=[0.5, 0.5, 0.5]).fit(mdp, trips(mdp, 10, 0))


@pytest.mark.slow
def test_standard_errors_cover_the_truth_as_often_as_they_say():
    mdp, covered = network(), []
    for seed in range(300):
        expert = trips(mdp, 300, 1000 + seed)
        table = estimation_table(MaxEntIRL(theta_max=None, theta_init=TRUTH).fit(mdp, expert), expert)
        gap = np.abs(table.estimate - TRUTH)
        covered.append([gap < 1.96 * table.std_error, gap < 1.96 * table.robust_std_error])
    by_kind = np.mean(covered, axis=(0, 2))
    assert np.all((by_kind > 0.93) & (by_kind < 0.97)), by_kind


def test_flows_with_a_horizon_leave_every_state_that_is_not_the_last():
    mdp, expert = small(3, state_action=False, horizon=5, discount=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MaxEntIRL().fit(mdp.replace(start=None), expert)
    flows = expected_flows(model, expert)
    assert_allclose(flows.steps.sum(axis=1)[4], 0.0)
    assert flows.steps.sum() <= flows.states.sum() - len(expert) + 1e-9
    assert np.all(flows.steps.sum(axis=1) <= flows.states + 1e-9)
