"""Cloning, plain and weighted: against counts made one by one, closed forms, and optima found by other means."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import problem
from scipy.optimize import minimize
from seeds import generator, pinned
from sklearn.exceptions import ConvergenceWarning
from worlds import ROUNDING, drawn, random_mdp, ring, without_actions

from messirl import MDP, Trajectories, sample
from messirl.estimators import DWBC, ISWBC, BehaviourCloning
from messirl.estimators._discriminator import by_features, by_table, pair_features
from messirl.estimators._prior_policy import action_counts
from messirl.estimators.dwbc import LEAST, MOST, Pairs
from messirl.estimators.iswbc import importance

KINDS = ["finite", "endless", "episodic", "steps", "sparse"]
each = pytest.mark.parametrize("kind", KINDS)
weighted = pytest.mark.parametrize("cls", [DWBC, ISWBC])


def counted(mdp, trajectories):
    """n(s, a), one choice after the other; a move without an action is shared out by who could have made it."""
    n = np.zeros((mdp.n_states, mdp.n_actions))
    dense = mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, mdp.n_states)
    for one in trajectories:
        for t, (here, there) in enumerate(zip(one.states[:-1], one.states[1:], strict=True)):
            if one.actions is not None:
                n[here, one.actions[t]] += 1
            else:
                n[here] += dense[here, :, there] / dense[here, :, there].sum()
    return n


# ------------------------------------------------------------ plain cloning


@each
@pytest.mark.parametrize("recorded", [True, False], ids=["actions", "moves"])
def test_a_clone_counts_what_was_done_with_a_prior_over_allowed_actions(kind, recorded):
    mdp, expert, _ = problem(kind)
    expert = expert if recorded else without_actions(expert)
    model, n = BehaviourCloning(smoothing=2.0).fit(mdp, expert), counted(mdp, expert)
    degree = mdp.allowed.sum(axis=1)
    for s in np.flatnonzero(degree):
        expected = (n[s] + 2.0 * mdp.allowed[s] / degree[s]) / (n[s].sum() + 2.0)
        assert_allclose(model.predict_proba([s], step=mdp.first_step)[0], expected, rtol=1e-12)
    assert not model.policy_[..., degree == 0, :].any()


def test_without_a_prior_a_clone_makes_its_experts_as_likely_as_any_stationary_policy_can():
    mdp, expert, _ = problem("endless")
    best = BehaviourCloning(smoothing=0.0).fit(mdp, expert)
    assert_allclose(best.policy_.sum(axis=1), 1.0)
    rng = generator(3)
    for _ in range(20):
        other = best.policy_ * rng.uniform(0.8, 1.2, size=best.policy_.shape)
        clone = BehaviourCloning().fit(mdp, expert)
        clone.policy_ = other / other.sum(axis=1, keepdims=True)
        assert clone.score(expert) <= best.score(expert) + ROUNDING


def test_a_clone_of_many_experts_is_the_expert():
    mdp = random_mdp(4, discount=0.9, start=np.full(5, 0.2))
    truth = generator(5).dirichlet(np.ones(3), size=5)
    model = BehaviourCloning().fit(mdp, sample(mdp, truth, 400, 40, random_state=1))
    # each state is visited about 3,000 times: five standard errors of a share are 0.05 at most
    assert_allclose(model.policy_, truth, atol=0.05)


def test_steps_of_their_own_are_pulled_to_the_policy_of_all_steps():
    mdp, expert, _ = problem("finite")
    together = BehaviourCloning(smoothing=3.0).fit(mdp, expert).policy_[0]
    model = BehaviourCloning(smoothing=3.0, by_step=True).fit(mdp, expert)
    for t in range(mdp.horizon - 1):
        n = np.zeros((mdp.n_states, mdp.n_actions))
        for one in expert:
            n[one.states[t], one.actions[t]] += 1
        assert_allclose(model.policy_[t], (n + 3.0 * together) / (n.sum(axis=1, keepdims=True) + 3.0), rtol=1e-12)


# ------------------------------------------------------------ discriminators


def shares(seed, m=12):
    rng = generator(seed)
    a, b = rng.dirichlet(np.ones(m)), rng.dirichlet(np.ones(m))
    return a, b, rng.normal(size=(m, 3)) * [1.0, 100.0, 0.01]


@pytest.mark.parametrize("eta", [None, 0.5], ids=["experts against all", "positive and unlabelled"])
def test_a_table_is_the_minimum_of_what_is_minimised_pair_by_pair(eta):
    a, other, _ = shares(1)
    a, b = (a, a + other) if eta is None else (eta * a, other)
    inside = a < 0.95 * b  # elsewhere the minimum is at infinity, d = 1
    d = by_table(a, b)
    assert_array_equal(d[a >= b], 1.0)

    def loss(g):
        return b * np.logaddexp(0.0, g) - a * g

    at = np.log(d[inside] / (1 - d[inside]))
    for step in (-1e-3, 1e-3):
        moved = np.full(a.size, 0.0)
        moved[inside] = at
        nearby = moved.copy()
        nearby[inside] += step
        assert (loss(nearby)[inside] > loss(moved)[inside]).all()


@pytest.mark.parametrize("eta", [None, 0.5], ids=["experts against all", "positive and unlabelled"])
def test_a_discriminator_of_features_is_where_another_search_ends(eta):
    a, other, inputs = shares(2)
    a, b = (a, a + other) if eta is None else (eta * a, other)
    weight = b / b.sum()
    units = np.sqrt(weight @ (inputs - weight @ inputs) ** 2)
    x = np.column_stack([np.ones(len(a)), (inputs - weight @ inputs) / units])

    def loss(w):
        g = x @ w
        return b @ np.logaddexp(0.0, g) - a @ g + 0.05 * (w[1:] @ w[1:])

    found = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-9})
    assert_allclose(by_features(a, b, inputs, 0.1), 1 / (1 + np.exp(-x @ found.x)), atol=1e-5)


def test_with_a_feature_for_every_pair_and_hardly_a_ridge_features_are_a_table():
    a, other, _ = shares(3)
    b = a + other
    assert_allclose(by_features(a, b, np.eye(a.size), 1e-10), by_table(a, b), atol=1e-5)


def test_units_and_offsets_of_features_do_not_change_a_discriminator():
    a, b, inputs = shares(4)
    plain = by_features(a, a + b, inputs, 0.01)
    assert_allclose(by_features(a, a + b, 1e3 * inputs - 7.0, 0.01), plain, atol=1e-7)
    beside = np.column_stack([inputs, np.full(len(a), 3.0)])  # says nothing
    assert_allclose(by_features(a, a + b, beside, 0.01), plain, atol=1e-9)


def test_features_of_a_pair_are_those_of_the_step_or_of_here_and_where_it_leads():
    mdp, _, _ = problem("steps")
    rows = np.array([0, 4, 7])
    assert_array_equal(pair_features(mdp, rows), mdp.features.reshape(-1, 3)[rows])
    mdp, _, _ = problem("finite")
    ahead = mdp.transitions.toarray() @ mdp.features
    assert_allclose(pair_features(mdp, rows), np.hstack([mdp.features[rows // 3], ahead[rows]]), rtol=ROUNDING)


# ------------------------------------------------------------ ISW-BC


def test_importance_weights_of_a_table_are_ratios_of_densities():
    own, everyone = np.array([3.0, 1.0, 0.0, 4.0]), np.array([5.0, 9.0, 2.0, 4.0])
    _, weight = importance(own, everyone, None, 0.01, 0.0)
    assert_allclose(weight, (own / 8.0) / (everyone / 20.0), rtol=1e-12)
    _, cut = importance(own, everyone, None, 0.01, 1.0)
    assert_allclose(cut, np.where(weight >= 1.0, weight, 0.0), rtol=1e-12)


@each
def test_with_a_table_importance_weighted_cloning_clones_the_experts(kind):
    mdp, expert, unlabelled = problem(kind)
    model = ISWBC(discriminator="table", smoothing=0.0).fit(mdp, expert, unlabelled)
    clone = BehaviourCloning(smoothing=0.0).fit(mdp, expert)
    visited = np.unique(expert.states[expert.leaves])
    first = () if mdp.horizon is None else (0,)
    assert_allclose(model.policy_[(*first, visited)], clone.policy_[(*first, visited)], atol=1e-12)


def test_others_that_are_like_the_experts_make_as_many_choices_as_there_are():
    mdp, expert, _ = problem("endless")
    model = ISWBC(discriminator="table").fit(mdp, expert, expert + expert)
    assert_allclose(model.effective_sample_size_, 3 * (expert.lengths - 1).sum())
    apart = ring(6, discount=0.9)
    stays, goes = ([[s] * 5 for s in at] for at in ((0, 1), (3, 4, 5)))
    experts = Trajectories.from_lists(stays, actions=[[0] * 4] * 2)
    others = Trajectories.from_lists(goes, actions=[[0] * 4] * 3)
    assert_allclose(ISWBC(discriminator="table").fit(apart, experts, others).effective_sample_size_, 8.0)


# ------------------------------------------------------------ DWBC


def test_the_policy_of_dwbc_weighs_both_sets_as_its_loss_says():
    mdp = ring(2, discount=0.9)
    own, others = np.array([6.0, 2.0, 1.0, 0.0]), np.array([5.0, 0.0, 3.0, 8.0])
    eta, alpha = 0.4, 7.5
    pairs = Pairs(mdp, np.arange(4), own, others)
    d = np.array([0.8, 0.9, 0.3, 0.6])
    policy, _ = pairs.policy(d, eta, alpha, 0.5, 0.0)
    p_own, p_others = own / own.sum(), others / others.sum()

    def loss(free):
        log_policy = np.log(np.stack([free, 1 - free], axis=1)).ravel()
        told = p_others * (d >= 0.5) / (1 - d)
        return -(alpha * p_own - eta * p_own / (d * (1 - d)) + told) @ log_policy

    best = minimize(loss, [0.5, 0.5], bounds=[(1e-6, 1 - 1e-6)] * 2, tol=1e-14).x
    assert_allclose(policy[:, 0], best, atol=1e-4)


def test_where_nothing_is_clipped_a_table_of_dwbc_clones_the_experts():
    """η p_E/p_O lies between the threshold and the largest d allowed: the corrections of the loss cancel."""
    mdp = ring(3, discount=0.9)
    expert = Trajectories.from_lists([[0, 0, 1, 2, 0], [0, 1, 1, 2, 2]], actions=[[0, 1, 1, 1], [1, 0, 1, 0]])
    model = DWBC(discriminator="table", eta=0.7, smoothing=0.0).fit(mdp, expert, expert + expert)
    assert_allclose(model.policy_, BehaviourCloning(smoothing=0.0).fit(mdp, expert).policy_, rtol=1e-9)
    assert_allclose(model.discriminator_[0], 0.7)


@each
def test_dwbc_stands_still_where_it_ends(kind):
    mdp, expert, unlabelled = problem(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # now and then turns circle around where both stand still
        model = DWBC().fit(mdp, expert, unlabelled)
    if not model.converged_:
        return
    own, others = (action_counts(mdp, some).ravel() for some in (expert, unlabelled))
    rows = np.flatnonzero(own + others)
    pairs = Pairs(mdp, rows, own[rows], others[rows])
    policy = model.policy_ if mdp.horizon is None else model.policy_[0]
    inputs = np.column_stack([pair_features(mdp, rows), np.log(policy.ravel()[rows])])
    sure = pairs.discriminator(inputs, model.eta, model.ridge)
    again, size = pairs.policy(sure, model.eta, model.alpha, model.threshold, model.smoothing)
    assert_allclose(again, policy, atol=1e-4)
    assert_allclose(size, model.effective_sample_size_, rtol=1e-3)
    assert ((sure >= LEAST) & (sure <= MOST)).all()


def test_dwbc_comes_to_rest():
    with pinned():  # most draws do, and some do not
        data = problem.__wrapped__("endless")
    assert DWBC().fit(*data).converged_


# ------------------------------------------------------------ both


def row_of_ways(n=6):
    """Places in a row, and a feature of steps that says which way they go."""
    left, right = np.maximum(np.arange(n) - 1, 0), np.minimum(np.arange(n) + 1, n - 1)
    way = np.stack([-np.ones((n, 1)), np.ones((n, 1))], axis=1)
    return MDP(np.stack([np.eye(n)[left], np.eye(n)[right]], axis=1), way, discount=0.9)


@weighted
def test_what_others_did_like_experts_is_imitated_where_no_expert_was(cls):
    mdp = row_of_ways()
    expert = Trajectories.from_lists([[0, 1, 2]] * 5, actions=[[1, 1]] * 5)
    others = Trajectories.from_lists([[3, 4, 5], [5, 4, 3]] * 10, actions=[[1, 1], [0, 0]] * 10)
    model, clone = cls().fit(mdp, expert, others), BehaviourCloning().fit(mdp, expert)
    assert_allclose(clone.predict_proba([4]), 0.5)
    assert model.predict_proba([4])[0, 1] > 0.8
    table = cls(discriminator="table").fit(mdp, expert, others)  # knows nothing of these pairs
    assert_allclose(table.predict_proba([4]), 0.5, atol=1e-9)


@weighted
def test_a_few_others_change_a_clone_of_many_experts_a_little(cls):
    mdp = random_mdp(7, discount=0.9, start=np.full(5, 0.2))
    expert, others = drawn(mdp, [3.0, -2.0, 1.0], 300, 1, length=30), drawn(mdp, [2.0, -2.0, 1.0], 3, 2, length=30)
    model, clone = cls(discriminator="table").fit(mdp, expert, others), BehaviourCloning().fit(mdp, expert)
    assert abs(model.score(expert) - clone.score(expert)) < 0.05


@weighted
def test_names_of_states_change_no_weighted_clone(cls):
    mdp, expert, unlabelled = problem("endless")
    names = generator(11).permutation(mdp.n_states)
    back = np.argsort(names)
    moves = mdp.transitions.toarray().reshape(5, 3, 5)[back][:, :, back]
    other = MDP(moves, mdp.features[back], discount=mdp.discount, start=mdp.start[back])
    renamed = [Trajectories(names[some.states], some.offsets, some.actions) for some in (expert, unlabelled)]
    once = cls(discriminator="table").fit(mdp, expert, unlabelled)
    assert_allclose(cls(discriminator="table").fit(other, *renamed).policy_[names], once.policy_, atol=1e-9)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (BehaviourCloning(smoothing=-1.0), ValueError, "smoothing=-1.0: it must be finite and >= 0"),
        (DWBC(discriminator="net"), ValueError, "discriminator='net': choose 'features' or 'table'"),
        (DWBC(eta=0.0), ValueError, "eta=0.0: it must be finite and > 0"),
        (DWBC(max_iter=0), ValueError, "max_iter=0: it must be a whole number >= 1"),
        (DWBC(discriminator="table", alpha=0.1, threshold=1.0), ValueError, "no choice has a positive weight"),
        (ISWBC(ridge=0.0), ValueError, "ridge=0.0: it must be finite and > 0"),
        (ISWBC(delta=1e9), ValueError, "no choice has a positive weight"),
        (ISWBC(delta="a"), TypeError, "delta='a': it must be a number"),
    ],
    ids=str,
)
def test_what_cannot_be_is_said_at_once(model, error, message):
    with pytest.raises(error, match=message):
        model.fit(*problem("endless"))


def test_turns_that_do_not_come_to_rest_are_reported():
    with pytest.warns(UserWarning, match="DWBC did not converge in max_iter=1 iterations"):
        model = DWBC(max_iter=1, tol=1e-12).fit(*problem("endless"))
    assert not model.converged_
