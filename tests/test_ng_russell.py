"""Ng and Russell's linear programme: its optimum, and rewards under which optimal experts are optimal."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import problem
from seeds import generator
from test_apprenticeship import all_counts
from worlds import maze, random_mdp

from messirl import MDP, feature_counts, sample
from messirl.estimators import NgRussell
from messirl.estimators.ng_russell import largest_lead_theta
from messirl.planning import optimal_policy, visits

seeds = pytest.mark.parametrize("seed", range(4))


def ahead_by(theta: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    """Σ_j p(θᵀ gap_j) for rows of θ."""
    lead = theta @ gaps.T
    return np.where(lead >= 0.0, lead, 2.0 * lead).sum(axis=1)


@seeds
def test_no_weights_in_the_box_put_the_experts_further_ahead(seed):
    """What is maximised is concave and grows with θ: on the edge of a square it can be seen everywhere."""
    rng = generator(seed)
    gaps = rng.normal(size=(6, 2)) + np.array([0.7, 0.3])
    found = largest_lead_theta(gaps, 2.0)
    side = np.linspace(-2.0, 2.0, 2001)
    edge = np.concatenate([np.column_stack([side, np.full(2001, e)]) for e in (-2.0, 2.0)])
    everywhere = np.concatenate([edge, edge[:, ::-1], np.zeros((1, 2))])
    assert np.abs(found).max() <= 2.0 + 1e-9
    assert ahead_by(found[None], gaps)[0] >= ahead_by(everywhere, gaps).max() - 1e-6


@seeds
def test_optimal_experts_are_optimal_under_the_reward_found(seed):
    """Counts of an endless trajectory of an optimal policy are exact if moves are deterministic and it is long."""
    rng = generator(seed)
    moves = np.eye(4)[rng.integers(4, size=(4, 2))]
    mdp = MDP(moves, rng.random((4, 3)), discount=0.6, start=np.eye(4)[0])
    best = optimal_policy(mdp, mdp.reward(rng.normal(size=3)))
    expert = sample(mdp, best, 1, length=150, random_state=0)
    target = feature_counts(mdp, expert).mean(axis=0)
    model = NgRussell().fit(mdp, expert)
    gains = all_counts(mdp) @ model.theta_
    assert model.converged_
    assert gains.max() <= target @ model.theta_ + 1e-6
    assert_allclose(model.regret_, gains.max() - target @ model.theta_, atol=1e-6)
    assert_allclose(model.feature_counts_ @ model.theta_, gains.max(), atol=1e-6)


@pytest.mark.parametrize("kind", ["finite", "endless", "steps", "sparse"])
def test_the_reward_kept_is_one_under_which_experts_are_behind_by_their_regret(kind):
    mdp, expert, _ = problem(kind)
    model = NgRussell().fit(mdp, expert)
    best = visits(mdp, optimal_policy(mdp, model.reward_)).counts(mdp)
    target = feature_counts(mdp, expert).mean(axis=0)
    assert_allclose(model.regret_, model.theta_ @ (best - target), atol=1e-7)
    assert_allclose(model.theta_ @ model.feature_counts_, model.theta_ @ best, atol=1e-7)  # of several best policies
    assert np.abs(model.theta_).max() <= 1.0


def test_the_bound_is_a_scale_and_no_more():
    mdp, expert, _ = problem("endless")
    one, ten = (NgRussell(theta_max=bound).fit(mdp, expert) for bound in (1.0, 10.0))
    assert_allclose(ten.theta_, 10.0 * one.theta_, atol=1e-9)
    assert_allclose(ten.policy_, one.policy_)


@pytest.mark.parametrize("unit", [1e-30, 1e30])
def test_the_policy_does_not_depend_on_how_small_or_large_all_features_are(unit):
    mdp, expert, _ = problem("endless")
    one = NgRussell().fit(mdp, expert)
    other = NgRussell().fit(mdp.replace(features=unit * np.asarray(mdp.features)), expert)
    assert_allclose(other.policy_, one.policy_)
    assert_allclose(other.theta_, one.theta_, rtol=1e-9)


@pytest.mark.parametrize("more", ["constant", "twice"])
def test_features_that_tell_no_policies_apart_do_not_hide_those_that_do(more):
    """A weight that changes no choice puts the experts neither ahead nor behind, as θ = 0 does."""
    mdp, expert, _ = problem("endless")
    plain = NgRussell().fit(mdp, expert)
    column = np.ones((mdp.n_states, 1)) if more == "constant" else mdp.features
    model = NgRussell().fit(mdp.replace(features=np.column_stack([mdp.features, column])), expert)
    assert model.termination_ == plain.termination_
    assert_allclose(model.policy_, plain.policy_, atol=1e-9)


def test_experts_that_do_as_the_first_policy_does_have_no_reward():
    """All ways are alike: no reward puts the experts ahead of a policy with their own counts."""
    mdp = maze(discount=0.9, horizon=4, features=np.ones((9, 1)), start=np.eye(9)[4])
    expert = sample(mdp, np.broadcast_to(mdp.allowed / mdp.allowed.sum(1, keepdims=True), (3, 9, 4)), 3, random_state=0)
    model = NgRussell().fit(mdp, expert)
    assert np.isfinite(model.score(expert))
    assert model.converged_
    assert_allclose(model.regret_, 0.0, atol=1e-9)


def test_too_few_policies_are_warned_of():
    mdp = random_mdp(4, 6, 3, 4, discount=0.9, start=np.full(6, 1 / 6))
    random = np.full((6, 3), 1 / 3)
    with pytest.warns(UserWarning, match="NgRussell did not converge: max_policies policies were found"):
        model = NgRussell(max_policies=1).fit(mdp, sample(mdp, random, 200, length=60, random_state=0))
    assert not model.converged_
