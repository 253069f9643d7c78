"""Small-sample errors and degrees of freedom, against their definitions in dense matrices."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import sqrtm
from scipy.stats import t as student
from seeds import shifted
from worlds import random_mdp, without_actions

from messirl import (
    MDP,
    MaxEntIRL,
    Trajectories,
    estimation_table,
    read_problem,
    sample,
    soft_policy,
    weight_ratio,
)
from messirl.inference import FewClustersWarning
from messirl.objective import Objective
from tests.roads import network, trips

DATA = Path(os.environ.get("MESSIRL_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
TRUTH = np.array([1.0, -0.5, 0.5])
SIZES = (1, 1, 2, 3, 4, 1, 5, 2, 1, 1, 3)  # trajectories of each individual


def problem(kind: str) -> tuple[MDP, Trajectories]:
    if kind == "goals":
        mdp = network()
        return mdp, trips(mdp, 200, 4)[: 3 * sum(SIZES)]
    rules = {
        "discounted": {"discount": 0.9},
        "horizon": {"discount": 1.0, "horizon": 8},
        "end": {"discount": 1.0, "terminal": np.arange(5) == 4},
    }[kind]
    mdp = random_mdp(2, by_step=True, start=np.full(5, 0.2), **rules)
    truth = TRUTH if kind != "end" else TRUTH - 2.0
    length = 10 if kind == "discounted" else None
    return mdp, sample(mdp, soft_policy(mdp, mdp.reward(truth)), sum(SIZES), length, shifted(4))


def log_policy(mdp, theta, goal=None):
    with np.errstate(divide="ignore"):
        found = soft_policy(mdp, mdp.reward(theta), goal=goal)
        return np.log(np.atleast_3d(found).reshape(-1, mdp.n_states, mdp.n_actions))


def outcomes(mdp, logs, s):
    """log-probabilities of the next states from s at one step, from those of the actions."""
    moves = mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, mdp.n_states)[s]
    with np.errstate(divide="ignore"):
        return np.log(np.exp(logs[s]) @ moves)


def by_definition(mdp, expert, model, labels):
    """Scores and expected information of every cluster, by differences of the policy; then CR2 and ν as defined."""
    theta, step, d = model.theta_, 1e-5, model.theta_.size
    clusters = labels.max() + 1
    g, info = np.zeros((len(expert), d)), np.zeros((clusters, d, d))
    goals = [None] * len(expert) if expert.goals is None else expert.goals.tolist()
    tables = {
        goal: [log_policy(mdp, theta + sign * step * e, goal) for e in np.eye(d) for sign in (1, -1)]
        for goal in set(goals)
    }
    at = {goal: log_policy(mdp, theta, goal) for goal in set(goals)}
    for i in range(len(expert)):
        states, actions, _ = expert[i]
        for k, s in enumerate(states[:-1]):
            t = k if mdp.horizon is not None else 0
            if actions is None:
                every = [outcomes(mdp, table[t], s) for table in tables[goals[i]]]
                logs, taken = outcomes(mdp, at[goals[i]][t], s), states[k + 1]
            else:
                every, logs, taken = [table[t][s] for table in tables[goals[i]]], at[goals[i]][t][s], actions[k]
            open_ = np.isfinite(logs)
            every = [one[open_] for one in every]
            slope = np.array([up - down for up, down in zip(every[::2], every[1::2], strict=True)]) / (2 * step)
            g[i] += slope[:, np.cumsum(open_)[taken] - 1]
            info[labels[i]] += (slope * np.exp(logs[open_])) @ slope.T
    g -= g.mean(axis=0)
    sums = np.array([g[labels == c].sum(axis=0) for c in range(clusters)])
    objective = Objective.from_trajectories(mdp, expert, quadratic=model.quadratic_, objective="choices")
    size = model.score(expert) * (expert.lengths - 1).sum() / (objective(theta).value + penalty(model))
    inverse = np.linalg.inv(-size * objective.hessian(theta))
    total = info.sum(axis=0) + (0.0 if model.quadratic_ is None else size * model.quadratic_)
    adjust = [np.linalg.inv(sqrtm(np.eye(d) - own @ np.linalg.inv(total))).real for own in info]
    turned = np.array([a @ own for a, own in zip(adjust, sums, strict=True)])
    covariance = inverse @ turned.T @ turned @ inverse
    freedom = []
    for j in range(d):
        q = [a.T @ inverse[j] for a in adjust]
        p = np.array(
            [
                [q[c] @ ((c == b) * info[c] - info[c] @ np.linalg.inv(total) @ info[b]) @ q[b] for b in range(clusters)]
                for c in range(clusters)
            ]
        )
        freedom.append(np.trace(p) ** 2 / (p**2).sum())
    return np.sqrt(np.diag(covariance)), np.array(freedom)


def penalty(model):
    return 0.0 if model.quadratic_ is None else 0.5 * model.theta_ @ model.quadratic_ @ model.theta_


@pytest.mark.parametrize("kind", ["discounted", "horizon", "end", "goals"])
@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("ridge", [0.0, 0.05])
def test_errors_and_degrees_of_freedom_are_those_of_the_definition(kind, recorded, ridge):
    mdp, expert = problem(kind)
    if not recorded:
        expert = without_actions(expert)
    model = MaxEntIRL(theta_max=None, ridge=ridge, tol=1e-9).fit(mdp, expert)
    whole = SIZES * (len(expert) // sum(SIZES))
    for labels in (np.arange(len(expert)), np.repeat(np.arange(len(whole)), whole)):
        table = estimation_table(model, expert, groups=labels)
        error, freedom = by_definition(mdp, expert, model, labels)
        assert_allclose(table.robust_std_error, error, rtol=1e-4)
        assert_allclose(table.degrees_of_freedom, freedom, rtol=1e-4)


def test_clusters_that_hold_one_trajectory_are_the_default():
    mdp, expert = problem("discounted")
    model = MaxEntIRL().fit(mdp, expert)
    one, two = estimation_table(model, expert), estimation_table(model, expert, cluster=np.arange(len(expert)))
    assert_allclose(one.robust_std_error, two.robust_std_error)
    assert_allclose(one.conf_int(), two.conf_int())
    with pytest.raises(ValueError, match="groups and cluster are the same argument"):
        estimation_table(model, expert, np.arange(len(expert)), cluster=np.arange(len(expert)))


def test_counts_have_n_minus_one_degrees_of_freedom_and_fewer_with_clusters_of_unequal_size():
    mdp, expert = problem("horizon")
    model = MaxEntIRL(objective="counts").fit(mdp, expert)
    assert_allclose(estimation_table(model, expert).degrees_of_freedom, len(expert) - 1)
    unequal = estimation_table(model, expert, groups=np.repeat(np.arange(len(SIZES)), SIZES))
    assert np.all(unequal.degrees_of_freedom < len(SIZES) - 1)


def test_intervals_are_students():
    mdp, expert = problem("discounted")
    table = estimation_table(MaxEntIRL().fit(mdp, expert), expert)
    for level in (0.5, 0.95, 0.999):
        low, high = table.conf_int(level).T
        half = student.ppf(0.5 + level / 2, table.degrees_of_freedom) * table.robust_std_error
        assert_allclose(low, table.estimate - half)
        assert_allclose(high, table.estimate + half)
    low, high = table.conf_int().T
    assert np.array_equal((low > 0) | (high < 0), table.p < 0.05)
    for row, ends in zip(table.rows(), table.conf_int(), strict=True):
        assert [row["low"], row["high"]] == ends.tolist()
    assert "df" in str(table)
    with pytest.raises(ValueError, match="level=1"):
        table.conf_int(1.0)


def test_a_ratio_has_the_fewer_degrees_of_freedom_of_its_two_weights():
    mdp, expert = problem("discounted")
    table = estimation_table(MaxEntIRL().fit(mdp, expert), expert)
    ratio = weight_ratio(table, *table.names[:2])
    reach = student.ppf(0.975, table.degrees_of_freedom[:2].min()) * ratio.robust_std_error
    assert_allclose([ratio.low, ratio.high], [ratio.value - reach, ratio.value + reach])


def test_few_clusters_are_warned_of_and_ten_are_not():
    mdp, expert = problem("discounted")
    model = MaxEntIRL().fit(mdp, expert)
    with pytest.warns(FewClustersWarning, match="intervals rest on 9 groups"):
        estimation_table(model, expert, groups=np.arange(len(expert)) % 9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimation_table(model, expert, groups=np.arange(len(expert)) % 10)
    few = MaxEntIRL(ridge=0.1).fit(mdp, expert[:5])
    with pytest.warns(FewClustersWarning, match="intervals rest on 5 expert trajectories"):
        estimation_table(few, expert[:5])


def test_units_and_order_of_individuals_change_no_interval():
    mdp, expert = problem("discounted")
    labels = np.repeat(np.arange(len(SIZES)), SIZES)
    table = estimation_table(MaxEntIRL(theta_max=None, tol=1e-9).fit(mdp, expert), expert, groups=labels)
    order = np.random.default_rng(0).permutation(len(expert))
    factor = np.array([1e-3, 1.0, 1e4])
    other = mdp.replace(features=mdp.features * factor)
    moved = estimation_table(
        MaxEntIRL(theta_max=None, tol=1e-9).fit(other, expert[order]), expert[order], groups=labels[order]
    )
    assert_allclose(moved.conf_int() * factor[:, None], table.conf_int(), rtol=1e-5)
    assert_allclose(moved.degrees_of_freedom, table.degrees_of_freedom, rtol=1e-5)


def test_a_weight_that_one_individual_alone_determines_has_no_interval():
    """Only the first individual ever meets the state in which the second feature can be chosen."""
    moves = np.zeros((4, 2, 4))
    moves[0, 0, 2] = moves[0, 1, 3] = moves[1, 0, 2] = moves[1, 1, 3] = 1.0
    features = np.zeros((4, 2, 2))
    features[0, 0, 0] = features[1, 0, 1] = 1.0
    mdp = MDP(moves, features, discount=1.0, terminal=np.arange(4) >= 2)
    ways = [([1, 2], [0]), ([1, 2], [0]), ([1, 3], [1])] + [([0, 2], [0]), ([0, 3], [1]), ([0, 2], [0])] * 4
    states, actions = zip(*ways, strict=True)
    expert = Trajectories.from_lists(states, actions)
    groups = np.concatenate([[0, 0, 0], np.repeat(np.arange(1, 12), 1), [12]])[: len(expert)]
    table = estimation_table(MaxEntIRL().fit(mdp, expert), expert, groups=groups)
    assert np.isfinite(table.conf_int()[0]).all()
    assert np.isnan(table.conf_int()[1]).all()
    assert np.isnan(table.p[1])


def test_the_bus_engines_have_the_errors_of_the_definition():
    folder = DATA / "bus_engines"
    if not folder.is_dir():
        pytest.skip("no bus_engines: set MESSIRL_DATA to the folder that holds it")
    problem = read_problem(folder).select("group = 4")
    model = MaxEntIRL().fit(problem.mdp, problem.trajectories)
    table = estimation_table(model, problem.trajectories)
    error, freedom = by_definition(problem.mdp, problem.trajectories, model, np.arange(37))
    assert_allclose(table.robust_std_error, error, rtol=1e-4)
    assert_allclose(table.degrees_of_freedom, freedom, rtol=1e-4)


def test_intervals_of_counts_that_run_away_do_not_crash():
    """With few experts matching counts diverges: falls of the gradient underflow, and curvature is rounding."""
    from studies.few_experts import board, drawn

    mdp, truth, _ = board("horizon", "large", 0)
    rng = np.random.default_rng([0, 5, 8, 0, 2026])
    for _ in range(8):
        seen, whose = drawn(mdp, truth, 5, (1,), rng, differ=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = MaxEntIRL(objective="counts", theta_max=None).fit(mdp, seen)
            estimation_table(model, seen, groups=whose)


def fork(place, made, first):
    """A walk that meets one of two forks, again and again, and takes its first way `first` times of `made`."""
    return [place, *(s for i in range(made) for s in (place + (1 if i < first else 2), place))]


@pytest.mark.filterwarnings("ignore::messirl.data.feature_counts.TruncationWarning")
@pytest.mark.parametrize("objective", ["choices", "counts"])
@pytest.mark.parametrize("fixed", [{"ridge": 0.0}, {"theta_prior": 10.0}], ids=["plain", "prior"])
def test_one_trajectory_alone_makes_no_preference(fixed, objective):
    """Its own score says nothing of how much estimates vary, whatever prior or rounding leaves of it."""
    moves, features = np.zeros((6, 2, 6)), np.zeros((6, 2))
    moves[[0, 0, 3, 3], [0, 1, 0, 1], [1, 2, 4, 5]] = 1.0
    moves[[1, 2], :, 0] = moves[[4, 5], :, 3] = 1.0
    features[1, 0] = features[4, 1] = 1.0
    mdp, rng = MDP(moves, features, discount=0.9), np.random.default_rng(shifted(3))
    for made in (10, 20):
        walks = [fork(0, made, rng.binomial(made, 0.7)) for _ in range(15)]
        seen = Trajectories.from_lists([*walks, fork(3, made, int(0.7 * made))])
        table = estimation_table(MaxEntIRL(objective=objective, **fixed).fit(mdp, seen), seen)
        low, high = table.conf_int()[1]
        assert np.isnan(low) or low <= 0.0 <= high, "the other trajectories never meet the second fork"
        low, high = table.conf_int()[0]
        assert low > 0.0, "these do meet the first"


def test_few_experts_who_always_choose_alike_make_no_preference():
    """With a weak prior the scores that are left are the prior's pull, and nearly the same for all."""
    rng = np.random.default_rng(shifted(1))
    claims = 0
    for _ in range(30):
        mdp = random_mdp(int(rng.integers(10**6)), discount=0.8, start=np.full(5, 0.2))
        seen = sample(mdp, soft_policy(mdp, mdp.reward(np.array([0.0, 0.0, 3.0]))), 2, 5, int(rng.integers(2**31)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = estimation_table(MaxEntIRL(theta_prior=10.0, theta_max=None).fit(mdp, seen), seen)
        low, high = table.conf_int()[:2].T
        claims += int((low > 0.0).sum() + (high < 0.0).sum())
    assert claims <= 4, "of 60, at 5 %"
