"""Work that does not fit in memory is refused before it begins, with what would fit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from worlds import random_mdp

from messirl import MDP, Trajectories, _memory_guard, optimal_policy, soft_policy, soft_values
from messirl.planning import finite_horizon
from messirl.similarity import RBF
from messirl.similarity.penalty import similarity_penalty


@pytest.fixture
def little(monkeypatch):
    """A thousand bytes are free, and all that is asked for is looked at."""
    monkeypatch.setattr(_memory_guard, "LITTLE", 0)
    monkeypatch.setattr(_memory_guard, "available_memory", lambda: 1000.0)


def test_the_system_says_how_much_memory_there_is():
    there = _memory_guard.available_memory()
    assert there is None or 0 < there < 2**60
    _memory_guard.check_memory("anything", 1e30 if there is None else 1.0, "")


def test_a_limit_of_the_process_counts(monkeypatch):
    resource = pytest.importorskip("resource")
    if not _memory_guard._lines(_memory_guard.Path("/proc/self/statm")):
        pytest.skip("this system does not say what a process has taken")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2**50, 2**50))
    taken = 2**50 - _memory_guard._left_of_limit()
    assert 0 < taken < 2**50


def test_a_limit_of_the_group_counts(monkeypatch, tmp_path):
    (tmp_path / "memory.max").write_text("5000\n")
    (tmp_path / "memory.current").write_text("2000\n")
    monkeypatch.setattr(_memory_guard, "GROUP", tmp_path)
    assert _memory_guard.available_memory() == 3000.0
    (tmp_path / "memory.max").write_text("max\n")
    assert _memory_guard._left_in_group() is None


def test_moves_that_do_not_fit_are_refused(little):
    moves = sp.csr_array(np.kron(np.eye(40), np.ones((2, 1))))
    with pytest.raises(MemoryError, match=r"40 states and 80 transitions would take .* 1e-06 GB are free: 1\d% of"):
        MDP(moves, np.ones((40, 1)), discount=0.9)
    with pytest.raises(MemoryError, match=r"transitions \(20, 2, 20\) would take .*: give a scipy.sparse matrix"):
        MDP(np.full((20, 2, 20), 0.05), np.ones((20, 1)), discount=0.9)


@pytest.mark.parametrize("kept", [True, False])
def test_policies_of_all_steps_that_do_not_fit_are_refused(monkeypatch, request, kept):
    mdp = random_mdp(0, horizon=30, discount=0.9)
    if not kept:
        monkeypatch.setattr(finite_horizon, "MEMORY", -1)
    request.getfixturevalue("little")
    reward = np.zeros(mdp.n_states)
    for work in (soft_policy, optimal_policy) if kept else (soft_policy, soft_values):
        with pytest.raises(MemoryError, match=r"of all 30 steps, 5 states and 3 actions would take .*of the horizon"):
            work(mdp, reward)
    with pytest.raises(MemoryError, match="of the horizon would fit"):
        soft_policy(mdp, reward, "noncausal")


def test_pairs_that_do_not_fit_are_refused_and_blocks_are_not(little):
    counts = np.random.default_rng(0).normal(size=(20, 2))
    some = Trajectories.from_lists([[0]] * 20)
    with pytest.raises(MemoryError, match=r"all pairs of 20 trajectories would take .* computed in blocks"):
        similarity_penalty(lambda *_: np.ones((20, 20)), some, counts)
    with pytest.raises(MemoryError, match="all pairs of 20 trajectories"):
        RBF(1.0)(some, counts)
    assert similarity_penalty(RBF(1.0), some, counts).shape == (2, 2)
