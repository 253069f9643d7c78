"""Abbeel and Ng, SSIRL, MWAL and LPAL: what their papers promise, against all policies of tiny problems."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import problem
from scipy.optimize import linprog, minimize
from seeds import generator, pinned
from worlds import drawn, maze, random_mdp

from messirl import MDP, Trajectories, feature_counts
from messirl.estimators import LPAL, MWAL, SSIRL, AbbeelNg, NgRussell
from messirl.estimators._action_ties import shared_evenly
from messirl.estimators._best_response import best_policy, mixed_policy, occupancy
from messirl.estimators._svm import support_vector_machine
from messirl.estimators._zero_sum_game import largest_count, stakes, weighed
from messirl.estimators.abbeel_ng import closest, projected
from messirl.estimators.ssirl import separating
from messirl.estimators.uniform import UniformPolicy
from messirl.planning import optimal_policy, visits

KINDS = ["finite", "endless", "steps", "sparse"]
every = pytest.mark.parametrize("kind", KINDS)
versions = pytest.mark.parametrize("version", ["projection", "max-margin"])
seeds = pytest.mark.parametrize("seed", range(3))


def tiny(seed: int, kind: str) -> tuple[MDP, Trajectories]:
    """A problem with few policies, and experts: endless, with a horizon, or with an end and features of steps."""
    if kind == "finite":
        mdp = random_mdp(seed, 2, 2, 2, discount=0.9, horizon=3, start=[0.5, 0.5])
        return mdp, drawn(mdp, [2.0, -1.0], 10, seed)
    if kind == "ended":
        mdp = random_mdp(
            seed, 3, 2, 2, by_step=True, discount=0.7, start=[0.6, 0.4, 0.0], terminal=[False, False, True]
        )
        return mdp, drawn(mdp, [2.0, -1.0], 10, seed, length=20)
    mdp = random_mdp(seed, 3, 2, 2, discount=0.7, start=[0.5, 0.3, 0.2])
    return mdp, drawn(mdp, [2.0, -1.0], 10, seed, length=20)


TINY = ["finite", "ended", "endless"]


def all_counts(mdp: MDP) -> np.ndarray:
    """Expected counts of every deterministic policy, one per row."""
    places = int(np.prod(mdp.policy_shape[:-1]))
    policies = (
        np.eye(mdp.n_actions)[list(choice)].reshape(mdp.policy_shape)
        for choice in product(range(mdp.n_actions), repeat=places)
    )
    return np.array([visits(mdp, policy).counts(mdp) for policy in policies])


def distance_to_hull(points: np.ndarray, target: np.ndarray) -> float:
    """By a general solver of nonlinear programmes, from several beginnings."""
    n = len(points)
    found = [
        minimize(
            lambda x: float(np.sum((x @ points - target) ** 2)),
            begin,
            jac=lambda x: 2.0 * points @ (x @ points - target),
            bounds=[(0.0, 1.0)] * n,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1.0},
            options={"ftol": 1e-14, "maxiter": 500},
        ).fun
        for begin in (np.full(n, 1.0 / n), *generator(n).dirichlet(np.ones(n), size=3))
    ]
    return float(np.sqrt(max(min(found), 0.0)))


def game_value(rows: np.ndarray, counts: np.ndarray, target: np.ndarray) -> float:
    """max over mixtures of the counts of the worst row: a matrix game."""
    k = len(counts)
    gains = rows @ (counts - target).T
    solved = linprog(
        np.append(np.zeros(k), -1.0),
        A_ub=np.column_stack([-gains, np.ones(len(rows))]),
        b_ub=np.zeros(len(rows)),
        A_eq=np.append(np.ones(k), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0.0, None)] * k + [(None, None)],
    )
    return float(-solved.fun)


# ------------------------------------------------------------ mixtures


@every
def test_the_policy_of_a_mixture_has_the_counts_of_the_mixture(kind):
    mdp, expert, unlabelled = problem(kind)
    for model in (AbbeelNg(epsilon=0.05), SSIRL(max_policies=6), MWAL(rounds=20)):
        model.fit(mdp, expert, unlabelled)
        assert_allclose(model.feature_counts_, model.weights_ @ model.policy_counts_, rtol=1e-7)
        assert_allclose(model.weights_.sum(), 1.0)
        for policy, counts in zip(model.policies_, model.policy_counts_, strict=True):
            assert_allclose(visits(mdp, policy).counts(mdp), counts, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kind", TINY)
def test_the_policy_of_a_mixture_visits_what_the_mixture_visits(kind):
    mdp, _ = tiny(1, kind)
    rng = generator(5)
    policies = rng.dirichlet(np.ones(2), size=(3, *mdp.policy_shape[:-1]))
    weights = np.array([0.2, 0.5, 0.3])
    mixed = mixed_policy(mdp, policies, weights, mdp.start)
    wanted = sum(w * occupancy(mdp, policy, mdp.start) for w, policy in zip(weights, policies, strict=True))
    going = ~mdp.terminal
    assert_allclose(occupancy(mdp, mixed, mdp.start)[..., going, :], wanted[..., going, :], rtol=1e-7)
    assert_allclose(mixed[..., going, :].sum(axis=-1), 1.0)


def test_where_no_policy_comes_to_a_mixture_does_what_its_policies_do():
    mdp = maze(discount=0.9, start=np.eye(9)[0])
    stay_away = np.zeros((9, 4))
    for s in range(9):
        stay_away[s, np.flatnonzero(mdp.allowed[s])[0]] = 1.0
    stay_away[0], stay_away[1] = np.eye(4)[1], np.eye(4)[3]  # to and fro between the first two places
    other = stay_away.copy()
    other[8] = np.eye(4)[3]
    mixed = mixed_policy(mdp, np.array([stay_away, other]), np.array([0.25, 0.75]), mdp.start)
    assert_allclose(mixed[8], 0.25 * stay_away[8] + 0.75 * other[8])


# ------------------------------------------------------------ Abbeel and Ng


@seeds
@versions
@pytest.mark.parametrize("epsilon", [0.3, 0.03])
def test_the_counts_are_within_epsilon_where_it_stops(version, epsilon, seed):
    """With deterministic moves and a horizon any trajectory is that of a policy: the counts can be matched."""
    mdp = maze(discount=0.9, horizon=6, features=generator(seed).random((9, 4)), start=np.full(9, 1 / 9))
    starts = Trajectories.from_lists([[s] for s in range(9)])
    expert = sum((drawn(mdp, [2.0, -1.0, 0.5, 0.0], 1, seed, start=np.eye(9)[s]) for s in range(9)), starts[[]])
    target = feature_counts(mdp, expert).mean(axis=0)
    model = AbbeelNg(version=version, epsilon=epsilon, max_policies=2000).fit(mdp, expert)
    assert model.converged_
    assert model.termination_ == "the counts are matched"
    assert np.linalg.norm(target - model.feature_counts_) <= epsilon * (1.0 + 1e-6)
    assert_allclose(np.linalg.norm(target - model.feature_counts_), model.margin_, rtol=1e-6, atol=1e-9)


@seeds
@versions
@pytest.mark.parametrize("kind", TINY)
def test_no_mixture_of_all_policies_is_closer_by_more_than_epsilon(kind, version, seed):
    mdp, expert = tiny(seed, kind)
    target = feature_counts(mdp, expert).mean(axis=0)
    model = AbbeelNg(version=version, epsilon=0.01, max_policies=2000).fit(mdp, expert)
    nearest = distance_to_hull(all_counts(mdp), target)
    assert model.margin_ <= nearest + 0.01 + 1e-6
    assert model.margin_ >= nearest - 1e-5
    assert model.bound_ <= nearest + 1e-5


@every
@versions
@pytest.mark.filterwarnings("ignore:AbbeelNg did not converge")
def test_margins_never_grow(kind, version):
    mdp, expert, _ = problem(kind)
    margins = AbbeelNg(version=version, epsilon=0.01).fit(mdp, expert).margins_
    assert (np.diff(margins) <= 1e-9 * margins[0]).all()


@seeds
def test_the_closest_mixture_is_that_of_a_general_solver(seed):
    rng = generator(seed)
    points, target = rng.normal(size=(6, 3)), rng.normal(size=3)
    weights = closest(points, np.ones(1), target)
    assert (weights >= 0).all()
    assert_allclose(weights.sum(), 1.0)
    found = weights @ points
    assert_allclose(np.linalg.norm(target - found), distance_to_hull(points, target), atol=1e-6)
    assert ((points - found) @ (target - found)).max() <= 1e-9  # nothing lies beyond


def test_the_closest_mixture_does_not_depend_on_units_or_order():
    rng = generator(3)
    points, target = rng.normal(size=(7, 3)), 3.0 * rng.normal(size=3)
    weights, order = closest(points, np.ones(1), target), rng.permutation(7)
    again = closest(1e6 * points, np.ones(1), 1e6 * target)
    assert_allclose(again @ points, weights @ points, atol=1e-9)  # which several weights may reach
    assert_allclose(closest(points[order], np.ones(1), target) @ points[order], weights @ points, atol=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # projections may come near slowly
@pytest.mark.parametrize("unit", [1e-9, 1e9])
@pytest.mark.parametrize("method", [AbbeelNg, SSIRL])
def test_the_policy_does_not_depend_on_the_unit_of_all_features(method, unit):
    mdp, expert = tiny(3, "endless")
    one, other = (
        method().fit(some, expert, expert).score(expert)
        for some in (mdp, mdp.replace(features=unit * np.asarray(mdp.features)))
    )
    assert_allclose(one, other, rtol=1e-3)


@pytest.mark.parametrize("kind", ["finite", "endless", "steps"])
def test_the_best_policy_is_one_and_shares_what_is_equally_good(kind):
    mdp = problem(kind).mdp
    reward = np.round(mdp.reward(np.array([1.0, -0.5, 0.3])))  # so that there are ties
    policy, start = best_policy(mdp, 1e-30 * reward), np.full(mdp.n_states, 1 / mdp.n_states)
    assert_allclose(policy.sum(axis=-1), 1.0)
    worth = [
        float((found.steps * reward).sum() if mdp.state_action else found.states @ reward)
        for found in (visits(mdp, some, start=start) for some in (policy, optimal_policy(mdp, reward)))
    ]
    assert_allclose(*worth, atol=1e-9)
    assert_allclose(best_policy(mdp, np.zeros_like(reward)), 1 / mdp.n_actions)


@pytest.mark.parametrize("method", [AbbeelNg, LPAL, MWAL, NgRussell])
def test_where_all_courses_are_alike_a_method_is_as_good_as_chance(method):
    mdp, expert, _ = problem("endless")
    alike = mdp.replace(features=np.ones((mdp.n_states, 1)))
    assert_allclose(method().fit(alike, expert).score(expert), UniformPolicy().fit(alike, expert).score(expert))


def test_a_projection_ends_on_the_segment():
    counts, target = np.array([[0.0, 0.0], [2.0, 0.0]]), np.array([0.5, 1.0])
    assert_allclose(projected(counts, np.ones(1), target), [0.75, 0.25])
    assert_allclose(projected(counts, np.ones(1), np.array([3.0, 1.0])), [0.0, 1.0])
    assert_allclose(projected(counts, np.ones(1), np.array([-1.0, 1.0])), [1.0, 0.0])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_max_margin_is_never_behind_projection_with_as_many_policies():
    mdp, expert, _ = problem("endless")
    ends = [
        AbbeelNg(version=v, epsilon=0.0, max_policies=6).fit(mdp, expert).margin_ for v in ("projection", "max-margin")
    ]
    assert ends[1] <= ends[0] * (1.0 + 1e-9)


def test_too_few_policies_are_warned_of():
    mdp, expert, _ = problem("endless")
    with pytest.warns(UserWarning, match="AbbeelNg did not converge: max_policies policies were found"):
        model = AbbeelNg(epsilon=1e-6, max_policies=2).fit(mdp, expert)
    assert not model.converged_
    assert len(model.weights_) == 2


# ------------------------------------------------------------ SSIRL


@seeds
def test_the_machine_is_that_of_a_general_solver(seed):
    rng = generator(seed)
    n, d = 9, 3
    points, signs, costs = rng.normal(size=(n, d)), np.where(rng.random(n) < 0.5, 1.0, -1.0), rng.uniform(0.1, 20.0, n)
    w = support_vector_machine(points, signs, costs)

    def cost(w):
        return 0.5 * w @ w + costs @ np.maximum(0.0, 1.0 - signs * (points @ w))

    solved = minimize(  # with slacks, as a smooth programme
        lambda x: 0.5 * x[:d] @ x[:d] + costs @ x[d:],
        np.append(np.zeros(d), np.ones(n)),
        jac=lambda x: np.append(x[:d], costs),
        bounds=[(None, None)] * d + [(0.0, None)] * n,
        constraints={"type": "ineq", "fun": lambda x: signs * (points @ x[:d]) - 1.0 + x[d:]},
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    assert cost(w) <= cost(solved.x[:d]) * (1.0 + 1e-7)
    assert_allclose(w, solved.x[:d], atol=1e-3 * max(1.0, float(np.abs(w).max())))


@seeds
def test_without_unlabelled_trajectories_the_direction_is_that_of_abbeel_and_ng(seed):
    """The widest margin between one point and a hull is along the shortest way between them."""
    rng = generator(seed)
    found, target = rng.random((5, 3)), np.array([2.0, 1.5, 1.0]) + rng.random(3)
    w = separating(target, found, rng.random((4, 3)), 0.0, 1e-5, offset=True)
    way = target - closest(found, np.ones(1), target) @ found
    assert w @ way / np.linalg.norm(way) > 0.98


@seeds
def test_unlabelled_trajectories_turn_the_direction_but_never_raise_its_cost(seed):
    rng = generator(seed)
    found, target, others = rng.random((4, 3)), rng.random(3), rng.random((8, 3))
    ridge, cost = 0.01, 0.5
    size = np.linalg.norm(np.vstack([target, found, others]), axis=1).max()

    def least(direction):
        """The least of the objective along a direction without offset, by search over its length."""
        lengths = np.linspace(0.0, 60.0, 6001)[:, None]
        good, bad, between = (lengths * (x @ direction / size) for x in (target[None], found, others))
        hinge = np.maximum(0.0, 1.0 - good).sum(1) + np.maximum(0.0, 1.0 + bad).sum(1)
        return (hinge + cost * np.maximum(0.0, 1.0 - np.abs(between)).sum(1) + ridge * lengths[:, 0] ** 2).min()

    with_them = separating(target, found, others, cost, ridge, offset=False)
    without = separating(target, found, others, 0.0, ridge, offset=False)
    assert least(with_them) <= least(without) * (1.0 + 1e-3)


@every
def test_ssirl_goes_back_to_abbeel_and_ng(kind):
    """What its own authors and the paper say of it: in the end all policies are bad, and the counts are what counts."""
    mdp, expert, unlabelled = problem(kind)
    model = SSIRL(max_policies=30).fit(mdp, expert, unlabelled)
    rival = AbbeelNg(version="max-margin").fit(mdp, expert)
    assert (np.diff(model.margins_) <= 1e-9 * model.margins_[0]).all()
    assert model.margins_[-1] <= rival.margin_ + 0.1 * model.margins_[0]


def test_ssirl_has_no_stopping_rule():
    with pinned():  # how many policies it takes until nothing is left to gain differs from draw to draw
        mdp, expert, unlabelled = problem.__wrapped__("finite")
    rival = AbbeelNg(version="max-margin").fit(mdp, expert)
    model = SSIRL(max_policies=25).fit(mdp, expert, unlabelled)
    assert len(rival.weights_) < len(model.weights_) == 25
    assert model.margins_[-5] <= rival.margin_ + 0.05 * model.margins_[0]  # long since done, and it goes on
    assert model.directions_.shape == (24, 3)
    assert_allclose(np.linalg.norm(model.directions_, axis=1), 1.0)


# ------------------------------------------------------------ MWAL and LPAL


@seeds
@pytest.mark.parametrize("signs", [None, [1, -1], [1, 0]], ids=str)
@pytest.mark.parametrize("kind", TINY)
def test_lpal_attains_the_value_of_the_game_between_all_policies_and_rewards(kind, signs, seed):
    mdp, expert = tiny(seed, kind)
    target = feature_counts(mdp, expert).mean(axis=0)
    value = game_value(stakes(mdp, signs), all_counts(mdp), target)
    assert_allclose(LPAL(signs=signs).fit(mdp, expert).value_, value, atol=1e-6)


def regret(mdp: MDP, k: int, rounds: int) -> float:
    """What MWAL may lack after so many rounds against k rows."""
    return 4.0 * largest_count(mdp) * float(np.sqrt(2.0 * np.log(k) / rounds) + np.log(k) / rounds)


@seeds
@pytest.mark.parametrize("signs", [None, [1, -1]], ids=str)
@pytest.mark.parametrize("kind", TINY)
def test_mwal_is_within_the_bound_of_its_theorem(kind, signs, seed):
    mdp, expert = tiny(seed, kind)
    target, rows, rounds = feature_counts(mdp, expert).mean(axis=0), stakes(mdp, signs), 100
    best = game_value(rows, all_counts(mdp), target)
    model = MWAL(signs=signs, rounds=rounds).fit(mdp, expert)
    assert best - regret(mdp, len(rows), rounds) <= model.value_ <= best + 1e-6
    assert model.bound_ >= best - 1e-6


@seeds
@pytest.mark.parametrize("make", [LPAL, MWAL])
def test_no_possible_reward_places_the_policy_behind_experts_that_follow_one(make, seed):
    mdp = maze(discount=0.9, horizon=5, features=generator(seed).random((9, 3)), start=np.eye(9)[4])
    expert = drawn(mdp, [2.0, -1.0, 0.5], 12, seed)
    target = feature_counts(mdp, expert).mean(axis=0)
    model = make(signs=[1, -1, 0]).fit(mdp, expert)
    slack = 1e-6 if make is LPAL else regret(mdp, 4, 200)
    rewards = generator(seed + 1).dirichlet(np.ones(4), size=50) @ stakes(mdp, [1, -1, 0])
    assert (rewards @ (model.feature_counts_ - target)).min() >= -slack
    assert model.value_ >= -slack


def test_with_known_signs_lpal_does_better_than_the_experts():
    mdp, expert, _ = problem("endless")
    scale = feature_counts(mdp, expert).mean(axis=0)
    known, unknown = LPAL(signs=[1, -1, 1]).fit(mdp, expert), LPAL().fit(mdp, expert)
    assert known.value_ >= unknown.value_ - 1e-7
    gain = np.array([1, -1, 1]) * (known.feature_counts_ - scale)
    assert (gain >= known.value_ * np.abs(mdp.features).max(axis=0) - 1e-6).all()


@pytest.mark.parametrize("off", [-1e-16, 0.0, 1e-16])
def test_rewards_that_cancel_leave_nothing_to_follow(off):
    rows = np.array([[3.0, 0.0], [0.0, 0.1], [-3.0, 0.0], [0.0, -0.1]])
    assert_array_equal(weighed(np.array([0.25 + off, 0.25, 0.25, 0.25 - off]), rows), [0.0, 0.0])
    assert_allclose(weighed(np.array([0.25, 0.4, 0.25, 0.1]), rows), [0.0, 0.03])


def test_the_game_does_not_depend_on_the_units_of_features():
    mdp, expert, _ = problem("finite")
    other = mdp.replace(features=mdp.features * np.array([1.0, 1000.0, 0.01]))
    assert_allclose(LPAL().fit(other, expert).value_, LPAL().fit(mdp, expert).value_, atol=1e-6)
    a, b = (MWAL(rounds=30).fit(some, expert) for some in (mdp, other))
    assert_allclose(a.value_, b.value_, rtol=1e-6)


@pytest.mark.parametrize("by_step", [False, True])
@pytest.mark.parametrize("horizon", [None, 4])
def test_sharing_among_actions_that_make_no_difference_changes_no_count(horizon, by_step):
    ends = np.arange(5) == 4
    one = random_mdp(0, 5, 2, 2, by_step=by_step, discount=0.9, horizon=horizon, terminal=ends, start=np.full(5, 0.2))
    rows = one.transitions.toarray().reshape(5, 2, 5)
    features = np.concatenate([one.features, one.features], axis=1) if by_step else one.features
    mdp = one.replace(transitions=np.concatenate([rows, rows], axis=1), features=features)
    lopsided = generator(1).dirichlet(np.full(4, 0.3), size=mdp.policy_shape[:-1]) * ~ends[:, None]
    usable = np.broadcast_to(mdp.allowed, (1 if horizon is None else horizon - 1, *mdp.allowed.shape))
    even = shared_evenly(mdp, lopsided, usable)
    assert_allclose(even[..., :2], even[..., 2:])
    assert_allclose(even.sum(axis=-1), lopsided.sum(axis=-1))
    assert_allclose(visits(mdp, even).counts(mdp), visits(mdp, lopsided).counts(mdp))
    assert np.abs(even[..., 0] - even[..., 1]).max() > 0.1  # what makes a difference is not shared


@pytest.mark.parametrize("signs", [[1, 2, 0], [1, 1], "good"])
def test_signs_that_are_none_are_refused(signs):
    mdp, expert, _ = problem("finite")
    for make in (MWAL, LPAL):
        with pytest.raises((TypeError, ValueError), match="signs"):
            make(signs=signs).fit(mdp, expert)
