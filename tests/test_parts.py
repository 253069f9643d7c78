"""Large problems in parts: the number of threads changes no bit, and parts change no more than rounding."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from seeds import generator

from messirl import MDP, soft_policy, soft_values, state_visitation
from messirl._compiled import threads
from messirl.paper.domains import slippery
from messirl.parallel import one_thread, processes, run
from messirl.planning import Planner, finite_horizon, multithreading
from messirl.planning.identifiability import unidentified
from messirl.planning.kernels.bellman import B
from messirl.planning.memory_layout import layout_of


def near_and_far(n: int, seed: int, **arguments) -> MDP:
    """Each action leads to a few states, most of them near; some states are ends, and some actions are missing."""
    rng = generator(seed)
    to = (np.arange(n)[:, None, None] + rng.integers(-9, 10, (n, 3, 3))) % n
    to[rng.random(to.shape) < 0.02] = rng.integers(n)
    chance = rng.dirichlet(np.ones(3), (n, 3)) * (rng.random((n, 3, 1)) < 0.95)
    row = np.repeat(np.arange(3 * n), 3)
    moves = sp.csr_array(sp.coo_array((chance.ravel(), (row, to.ravel())), shape=(3 * n, n)))
    features = rng.normal(size=(n, 4)) if seed % 2 else rng.normal(size=(n, 3, 4))
    terminal = rng.random(n) < 0.02
    return MDP(moves, features, start=np.full(n, 1.0 / n), terminal=terminal, **arguments)


def everything(mdp: MDP) -> list[np.ndarray]:
    """Values, policy, visits, what a planner expects from a source of both signs, and what identifies θ."""
    rng = generator(5)
    reward = mdp.reward(rng.normal(size=mdp.n_features))
    policy = soft_policy(mdp, reward)
    signed = rng.normal(size=mdp.n_states) if mdp.horizon is None else rng.normal(size=(mdp.horizon, mdp.n_states))
    alive = np.isfinite(mdp.first(soft_values(mdp, reward)))
    expected = Planner(mdp, "causal", mdp.start, source=signed * alive)(reward, steps=True)
    return [
        soft_values(mdp, reward),
        policy,
        state_visitation(mdp, policy, start=mdp.start * alive),
        np.array([expected.log_partition]),
        expected.visits.states,
        expected.visits.steps,
        unidentified(mdp, mdp.start, None),
    ]


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(multithreading, "STATES", B)


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("horizon", [None, 12])
@pytest.mark.parametrize("seed", range(4))
def test_parts_change_nothing_but_rounding(monkeypatch, horizon, seed, kept):
    if not kept:
        monkeypatch.setattr(finite_horizon, "MEMORY", -1)
    mdp = near_and_far(900, seed, discount=0.9, horizon=horizon)
    whole = everything(mdp)
    assert len(layout_of(mdp).parts) == 1
    monkeypatch.setattr(multithreading, "STATES", B)
    again = mdp.replace()
    for got, wanted in zip(everything(again), whole, strict=True):
        assert_allclose(got, wanted, rtol=1e-9, atol=1e-11)
    assert len(layout_of(again).parts) > 4


@pytest.mark.parametrize("horizon", [None, 12])
@pytest.mark.parametrize("seed", range(2))
def test_the_number_of_threads_changes_no_bit(monkeypatch, small_parts, horizon, seed):
    found = []
    for n in (1, 2, 3):
        monkeypatch.setattr(multithreading, "threads", lambda n=n: n)
        found.append(everything(near_and_far(1500, seed, discount=0.95, horizon=horizon)))
    for one, *others in zip(*found, strict=True):
        for other in others:
            assert_array_equal(other, one)


def used_by(mdp: MDP) -> set[int]:
    """How many threads the pools have that an evaluation of this MDP asks for."""
    sizes, pool = set(), multithreading._pool

    def asked(n):
        sizes.add(n)
        return pool(n)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(multithreading, "_pool", asked)
        soft_policy(mdp, mdp.reward(np.ones(mdp.n_features)))
    return sizes


def grid(side: int) -> MDP:
    return MDP(slippery(side, 0.7), np.ones((side * side, 1)), discount=0.9, horizon=3)


@pytest.mark.parametrize(("side", "allowed", "used"), [(64, 4, set()), (150, 4, {2}), (300, 4, {4}), (300, 1, set())])
def test_small_problems_keep_to_one_thread_and_large_ones_use_what_is_allowed(monkeypatch, side, allowed, used):
    monkeypatch.setattr(multithreading, "threads", lambda: allowed)
    assert used_by(grid(side)) == used


def test_what_numba_is_told_is_respected():
    code = """
import numba
from messirl._compiled import threads
print(threads())
numba.set_num_threads(2)
print(threads())
"""
    told = {**os.environ, "NUMBA_NUM_THREADS": "3"}
    done = subprocess.run([sys.executable, "-c", code], env=told, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3", "2"]


def test_one_of_many_pieces_of_work_keeps_to_one_thread(monkeypatch):
    monkeypatch.setattr(multithreading, "threads", lambda: 4)
    with one_thread():
        assert used_by(grid(150)) == set()


def allowed(_: object) -> int:
    return threads()


@pytest.mark.slow
def test_processes_have_one_thread_each():
    with processes(2) as executor:
        assert list(run(allowed, [0, 1], executor)) == [1, 1]
