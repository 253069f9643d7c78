"""Horizons whose policies do not fit: values and visits are those of the policies kept whole."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from problems import problem
from seeds import generator
from worlds import random_mdp

from messirl import MDP, MESSI, MaxEntIRL, soft_policy, soft_values
from messirl.planning import choice_likelihood, finite_horizon, model_for
from messirl.planning.finite_horizon import CheckpointedSolution

EXACT = {"rtol": 1e-11, "atol": 1e-12}


@pytest.fixture
def little_memory(monkeypatch):
    """No policies are kept, and no source is dense."""
    monkeypatch.setattr(finite_horizon, "MEMORY", -1)
    monkeypatch.setattr(choice_likelihood, "DENSE", -1)


def with_dead_ends(seed: int, horizon: int) -> MDP:
    """Random moves among nine states, of which one has no action and one is terminal."""
    rng = generator(seed)
    moves = rng.dirichlet(np.full(9, 0.2), (9, 3))
    moves[4] = 0.0
    moves[:, :, 4] = np.where(np.arange(3) == 2, moves[:, :, 4], 0.0)
    moves[6, :, :] = np.eye(9)[4]
    sums = moves.sum(axis=2, keepdims=True)
    moves = np.where(sums > 0, moves / np.where(sums > 0, sums, 1.0), 0.0)
    return MDP(moves, rng.normal(size=(9, 2)), horizon=horizon, discount=0.9, terminal=np.arange(9) == 8)


def both(mdp, reward):
    """The solution with checkpoints and the one that keeps everything."""
    got = model_for(mdp).solve(reward)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finite_horizon, "MEMORY", 2**40)
        wanted = model_for(mdp).solve(reward)
    assert isinstance(got, CheckpointedSolution)
    assert not isinstance(wanted, CheckpointedSolution)
    return got, wanted


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("horizon", [2, 3, 10, 37])
@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_checkpoints_change_neither_values_nor_policies_nor_visits(little_memory, seed, horizon, discount):
    mdp = random_mdp(seed, horizon=horizon, discount=discount)
    rng = generator(seed)
    got, wanted = both(mdp, mdp.reward(rng.normal(size=mdp.n_features)))
    assert_allclose(got.values, wanted.values, **EXACT)
    assert_allclose(got.table, wanted.table, **EXACT)
    for t in (0, horizon - 2, horizon // 2 if horizon > 2 else 0):
        assert_allclose(got.step(t), wanted.table[t], **EXACT)
    places = rng.integers(0, horizon * mdp.n_states, 20)
    assert_allclose(got.at(places), wanted.at(places), **EXACT)
    for source in (rng.normal(size=mdp.n_states), rng.normal(size=(horizon, mdp.n_states))):
        one, other = got.expectation(source), wanted.expectation(source)
        assert_allclose(one.log_partition, other.log_partition, **EXACT)
        assert_allclose(one.visits.states, other.visits.states, **EXACT)
        assert_allclose(one.visits.steps, other.visits.steps, **EXACT)


@pytest.mark.parametrize("seed", range(3))
def test_a_sparse_source_is_as_good_as_a_dense_one(little_memory, seed):
    mdp, rng = random_mdp(seed, horizon=12, discount=0.95), generator(seed)
    source = np.where(rng.random((12, mdp.n_states)) < 0.2, rng.normal(size=(12, mdp.n_states)), 0.0)
    for found in both(mdp, mdp.reward(rng.normal(size=mdp.n_features))):
        dense, sparse = found.expectation(source), found.expectation(sp.csr_array(source))
        assert_allclose(sparse.log_partition, dense.log_partition, **EXACT)
        assert_allclose(sparse.visits.states, dense.visits.states, **EXACT)


@pytest.mark.parametrize("seed", range(3))
def test_dead_ends_are_avoided_piece_by_piece(little_memory, seed):
    mdp = with_dead_ends(seed, 14)
    got, wanted = both(mdp, mdp.reward(np.array([1.0, -0.5])))
    assert np.isneginf(wanted.values).any()
    assert_allclose(got.values, wanted.values, **EXACT)
    assert_allclose(got.table, wanted.table, **EXACT)
    start = np.zeros(9)
    start[np.argmax(wanted.values[0])] = 1.0
    assert_allclose(got.expectation(start).visits.states, wanted.expectation(start).visits.states, **EXACT)
    with pytest.raises(ValueError, match="cannot start in state 4"):
        got.expectation(np.eye(9)[4])


@pytest.mark.parametrize("objective", ["counts", "choices"])
def test_a_fit_with_checkpoints_is_the_fit_without(monkeypatch, objective):
    mdp, expert, unlabelled = problem("finite")
    arguments = {"objective": objective, "max_iter": 500}
    wanted = MESSI(**arguments).fit(mdp, expert, unlabelled)
    monkeypatch.setattr(finite_horizon, "MEMORY", -1)
    monkeypatch.setattr(choice_likelihood, "DENSE", -1)
    got = MESSI(**arguments).fit(mdp.replace(), expert, unlabelled)
    assert_allclose(got.theta_, wanted.theta_, rtol=1e-5, atol=1e-6)
    assert_allclose(got.visitation_, wanted.visitation_, rtol=1e-6, atol=1e-8)
    assert_allclose(got.score(expert), wanted.score(expert), rtol=1e-6)
    assert_allclose(got.predict_proba([0, 1], step=1), wanted.predict_proba([0, 1], step=1), rtol=1e-5)
    assert len(got.policy_) == len(wanted.policy_)
    assert got.policy_.shape == wanted.policy_.shape
    assert_allclose(got.policy_[-1], wanted.policy_[-1], rtol=1e-5, atol=1e-8)


def test_policies_of_all_steps_that_do_not_fit_are_refused_with_advice(little_memory):
    mdp, expert, _ = problem("finite")
    model = MaxEntIRL(ridge=0.1, max_iter=300).fit(mdp, expert)
    with pytest.raises(ValueError, match="ask for one step at a time"):
        np.asarray(model.policy_)
    with pytest.raises(ValueError, match="ask for one step at a time"):
        model.sample(3)
    with pytest.raises(IndexError, match="is not one of 0"):
        model.policy_[len(model.policy_)]
    assert repr(model.policy_).startswith("StepPolicies(")


def test_soft_values_and_policies_are_whole_whatever_the_memory(little_memory):
    mdp = random_mdp(0, horizon=9, discount=0.9)
    reward = mdp.reward(np.ones(mdp.n_features))
    got, wanted = both(mdp, reward)
    assert_allclose(soft_values(mdp, reward), wanted.values, **EXACT)
    assert_allclose(soft_policy(mdp, reward), got.table, **EXACT)
