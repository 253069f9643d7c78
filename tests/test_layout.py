"""How the kernels store a problem, and the moves of large grids."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from seeds import generator
from worlds import random_mdp

from messirl import MDP, soft_policy, soft_values, state_visitation
from messirl._compiled import LINE
from messirl.paper.domains import slippery
from messirl.planning import memory_layout
from messirl.planning.kernels.bellman import B
from messirl.planning.memory_layout import layout_of


@pytest.mark.parametrize("deterministic", [False, True])
def test_a_layout_made_in_parts_is_the_one_made_at_once(monkeypatch, deterministic):
    rng, n = generator(0), 300
    moves = np.zeros((n, 2, n))
    for s in range(n):
        for a in range(2):
            to = rng.choice(n, 1 if deterministic else int(rng.integers(1, 5)), replace=False)
            moves[s, a, to] = rng.dirichlet(np.ones(to.size))
    mdp = MDP(moves, np.ones((n, 1)), discount=0.9)
    whole = layout_of(mdp)
    monkeypatch.setattr(memory_layout, "STATES_AT_ONCE", 70)
    parts = layout_of(mdp.replace())
    assert parts.shared == whole.shared
    assert_array_equal(parts.off, whole.off)
    assert_array_equal(parts.idx, whole.idx)
    assert_array_equal(parts.own, whole.own)
    assert_allclose(parts.prob, whole.prob, rtol=1e-15)


@pytest.mark.parametrize("side", [1, 2, 5])
def test_a_slippery_grid_is_the_one_made_cell_by_cell(side):
    wanted = np.zeros((side * side * 4, side * side))
    steps = [(0, 1), (0, -1), (-1, 0), (1, 0)]
    for y in range(side):
        for x in range(side):
            for meant in range(4):
                for made, (dx, dy) in enumerate(steps):
                    to = min(max(y + dy, 0), side - 1) * side + min(max(x + dx, 0), side - 1)
                    wanted[(y * side + x) * 4 + meant, to] += 0.7 if made == meant else 0.1
    assert_allclose(slippery(side, 0.7).toarray(), wanted, atol=1e-15)


def test_rows_that_do_not_quite_sum_to_one_are_corrected_and_the_others_left_alone():
    moves = np.full((3, 2, 3), 1.0 / 3.0)
    moves[1, 1] = [0.5, 0.25, 0.25 + 5e-7]
    mdp = MDP(moves, np.ones((3, 1)), discount=0.9, terminal=[False, False, True])
    got = mdp.transitions.toarray().reshape(3, 2, 3)
    assert_allclose(got[1, 1], moves[1, 1] / moves[1, 1].sum(), rtol=1e-15)
    assert_allclose(got[0], moves[0], rtol=1e-15)
    assert_array_equal(got[2], np.zeros((2, 3)))


@pytest.mark.parametrize("horizon", [None, 5])
def test_a_policy_that_came_from_the_kernels_is_not_copied(horizon):
    mdp = random_mdp(3, discount=0.9, horizon=horizon)
    policy, layout = soft_policy(mdp, mdp.reward(np.ones(mdp.n_features))), layout_of(mdp)
    assert np.shares_memory(layout.action_major(policy), policy)
    for other in (policy.copy(), np.array(policy, order="F"), policy[..., ::-1], policy * 1.0):
        stored = layout.action_major(other)
        assert not np.shares_memory(stored, other)
        assert_array_equal(layout.state_major(stored), other)
        assert not stored[..., mdp.n_states :].any()


def test_what_the_kernels_read_begins_a_line_of_the_cache():
    mdp = random_mdp(3, discount=0.9, horizon=5)
    layout = layout_of(mdp)
    for array in (layout.prob, layout.pad(np.ones(mdp.n_states)), layout.pad(np.ones((3, mdp.n_states)))):
        assert array.ctypes.data % LINE == 0
        assert array.flags.c_contiguous


def moves_stored(stored):
    """The transitions (S·A, S) that a layout holds."""
    moves = np.zeros((stored.padded * stored.n_actions, stored.n_states))
    for b in range(stored.off.size - 1):
        slots = np.arange(stored.off[b], stored.off[b + 1])
        for a in range(stored.n_actions):
            for u, slot in enumerate(slots):
                if not stored.shared and u // (len(slots) // stored.n_actions) != a:
                    continue
                row = stored.own[b] + (u * stored.n_actions + a if stored.shared else u)
                states = b * B + np.arange(B)
                np.add.at(moves, (states * stored.n_actions + a, stored.idx[slot]), stored.prob[row])
    return moves[: stored.n_states * stored.n_actions]


@pytest.mark.parametrize("success", [0.7, 1.0])
@pytest.mark.parametrize("side", [3, 16, 40])
def test_blocks_that_are_alike_share_their_probabilities(side, success):
    mdp = MDP(slippery(side, success), np.ones((side * side, 1)), discount=0.9)
    stored = layout_of(mdp)
    assert_array_equal(moves_stored(stored), mdp.transitions.toarray())
    if side == 40:  # thirteen blocks, most of them off the edge
        assert len(set(stored.own.tolist())) < stored.own.size


def test_blocks_that_are_not_alike_have_their_own():
    rng, n = generator(3), 400
    moves = np.zeros((n, 2, n))
    for s in range(n - 150):  # the last blocks hold no moves at all
        moves[s, :, rng.choice(n, 3, replace=False)] = rng.dirichlet(np.ones(3), 2).T
    mdp = MDP(moves, np.ones((n, 1)), discount=0.9)
    stored = layout_of(mdp)
    assert_array_equal(moves_stored(stored), mdp.transitions.toarray())
    assert len(set(stored.own[:2].tolist())) == 2


def test_what_fills_the_last_block_of_a_policy_from_elsewhere_is_not_looked_at():
    mdp = random_mdp(3, discount=0.9, horizon=5, start=np.full(5, 0.2))
    policy = soft_policy(mdp, mdp.reward(np.ones(mdp.n_features)))
    filled = np.full((4, mdp.n_actions, B), np.nan)
    filled[..., :5] = np.swapaxes(policy, -1, -2)
    assert_array_equal(
        state_visitation(mdp, np.swapaxes(filled[..., :5], -1, -2)), state_visitation(mdp, policy.copy())
    )


@pytest.mark.parametrize("n", [1, 200])
def test_a_problem_without_any_move_has_values(n):
    mdp = MDP(np.zeros((n, 2, n)), np.ones((n, 1)), discount=0.9, terminal=np.ones(n, dtype=bool))
    assert_array_equal(soft_values(mdp, np.full(n, 2.0)), np.full(n, 2.0))
