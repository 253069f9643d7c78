"""Sampling of trajectories: actions from the policy, next states from the dynamics."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from messirl._checks import is_whole
from messirl._types import Floats, Ints
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.planning._validation import check_goal, checked_policy, start_of
from messirl.planning.reachability import ends_of

MAX_LENGTH = 100_000  # number of states after which an episodic trajectory that has not ended is an error
MAX_STATES = 10**9  # maximum number of states in total: 16 gigabytes with their actions


def sample(
    mdp: MDP,
    policy: npt.ArrayLike,
    n: int,
    length: int | None = None,
    random_state: Any = None,
    *,
    goal: int | None = None,
    start: npt.ArrayLike | None = None,
) -> Trajectories:
    """Sample n trajectories with their actions, of at most `length` states each.

    length=None: the horizon, or until every trajectory has ended; infinite-horizon problems need a length. With `goal`
    the trajectories end there and have it as their goal.
    """
    check_goal(mdp, goal)
    if not is_whole(n) or n < 0:
        raise ValueError(f"n={n!r}: the number of trajectories must be a whole number >= 0")
    if length is not None and (not is_whole(length) or length < 1):
        raise ValueError(f"length={length!r}: the maximum number of states must be a whole number >= 1, or None")
    table, ends = checked_policy(mdp, policy), ends_of(mdp, goal)
    limit = min((states for states in (length, mdp.horizon) if states is not None), default=None)
    if limit is None and not ends.any():
        raise ValueError("nothing ends these trajectories: give length=, the number of states of each")
    least = int(n) * (1 if limit is None or ends.any() else int(limit))
    if least > MAX_STATES:
        raise ValueError(f"the trajectories would have more than {MAX_STATES:.0e} states: draw fewer, or shorter ones")
    begin = start_of(mdp, start)
    random = random_source(random_state)

    ladder = np.cumsum(begin)  # draws are scaled by its last entry, which may differ from begin.sum() by rounding
    now = np.searchsorted(ladder, random.random_sample(n) * ladder[-1], side="right")
    states, actions = [now], []
    going = ~ends[states[0]]
    for t in range((limit or MAX_LENGTH) - 1):
        if not going.any():
            break
        at = states[-1]
        rows = table[mdp.at(t, at)]
        chosen, entered = np.full(n, -1), np.full(n, -1)
        chosen[going] = _choose(rows[going], at[going], random.random_sample(int(going.sum())))
        entered[going] = _move(mdp, at[going] * mdp.n_actions + chosen[going], random.random_sample(int(going.sum())))
        states.append(entered)
        actions.append(chosen)
        going = going & ~ends[entered]
    if limit is None and going.any():
        raise ValueError(
            f"{int(going.sum())} of {n} trajectories had not ended after {MAX_LENGTH} states: give a length, or a "
            "policy whose trajectories end"
        )
    grid = np.stack(states, axis=1)
    taken = np.stack(actions, axis=1) if actions else np.zeros((n, 0), dtype=np.int64)
    there = grid >= 0
    offsets = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    return Trajectories(grid[there], offsets, taken[taken >= 0], None if goal is None else np.full(n, goal))


def random_source(random_state: Any) -> np.random.RandomState:
    """Return the source for a `random_state` as in scikit-learn; NumPy generators are accepted too."""
    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(random_state.integers(2**32, dtype=np.uint32))
    source: np.random.RandomState = check_random_state(random_state)
    return source


def _choose(rows: Floats, states: Ints, u: Floats) -> Ints:
    cumulated = np.cumsum(rows, axis=1)
    total = cumulated[:, -1]
    wrong = ~(np.abs(total - 1.0) < 1e-6) | (rows < 0).any(axis=1)
    if wrong.any():
        i = int(np.argmax(wrong))
        what = "has a negative probability" if (rows[i] < 0).any() else f"sums to {total[i]:.4f}, not 1"
        raise ValueError(f"policy[{states[i]}] {what}, but the state is visited")
    return np.asarray((cumulated <= (u * total)[:, None]).sum(axis=1).clip(max=rows.shape[1] - 1))


def _move(mdp: MDP, rows: Ints, u: Floats) -> Ints:
    """Draw next states: u is looked up in the cumulative probabilities of its row, all rows in one sorted array."""

    def build() -> Floats:
        matrix = mdp.transitions
        cumulated = np.cumsum(matrix.data)
        before = np.concatenate([[0.0], cumulated])[matrix.indptr[:-1]]
        row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        return np.asarray(row + np.minimum(cumulated - before[row], 1.0))

    ladder, indptr = mdp.memo("ladder", build), mdp.transitions.indptr
    if np.any(indptr[rows] == indptr[rows + 1]):
        bad = int(rows[np.argmax(indptr[rows] == indptr[rows + 1])])
        raise ValueError(
            f"the policy takes action {bad % mdp.n_actions} in state {bad // mdp.n_actions}, which is not allowed there"
        )
    at = np.searchsorted(ladder, rows + u, side="right")
    return np.asarray(mdp.transitions.indices[np.clip(at, indptr[rows], indptr[rows + 1] - 1)], dtype=np.int64)
