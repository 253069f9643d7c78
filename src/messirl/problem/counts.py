"""Discounted feature counts f_ζ = Σ_t γ^t f(s_t) (Eq. 1), and whether trajectories fit an MDP.

What counts: with state features every visited state, the last included; with state-action features every step taken.
A trajectory of an endless discounted problem that is cut before a terminal state stands for an endless one: its counts
are divided by 1 − γ^T, with T the number of counted terms.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from messirl.problem.mdp import MDP, Floats
from messirl.problem.trajectories import Ints, Trajectories

LONG_TAIL = 0.1  # γ^T above which a cut trajectory says little of the endless one


def feature_counts(mdp: MDP, trajectories: Trajectories) -> Floats:
    """Feature counts of every trajectory, (n, d), in one pass over all states."""
    check_trajectories(mdp, trajectories)
    n, gamma = len(trajectories), mdp.discount
    if mdp.state_action:
        left = trajectories.leaves
        columns = trajectories.states[left] * mdp.n_actions + step_actions(mdp, trajectories)
        step, offsets = trajectories.step[left], trajectories.offsets - np.arange(n + 1)
    else:
        columns, step, offsets = trajectories.states, trajectories.step, trajectories.offsets
    weights = np.ones(columns.size) if gamma == 1.0 else gamma**step
    visits = sp.csr_array((weights, columns, offsets), shape=(n, mdp.feature_rows.shape[0]))
    product = visits @ mdp.feature_rows
    counts = np.asarray(product.todense() if sp.issparse(product) else product, dtype=np.float64)
    return counts / _seen_share(mdp, trajectories, np.diff(offsets))[:, None]


def _seen_share(mdp: MDP, trajectories: Trajectories, terms: Ints) -> Floats:
    """1 − γ^T where a trajectory stands for an endless one, else 1."""
    share = np.ones(len(trajectories))
    if mdp.horizon is not None or mdp.discount == 1.0 or trajectories.goals is not None:
        return share
    cut = ~mdp.terminal[trajectories.last]
    if np.any(cut & (terms == 0)):
        i = int(np.argmax(cut & (terms == 0)))
        raise ValueError(f"trajectory {i} has no step, so no state-action feature to count: drop it")
    tail = mdp.discount ** terms[cut].astype(np.float64)
    if tail.size and tail.max() > LONG_TAIL:
        i = int(np.flatnonzero(cut)[np.argmax(tail)])
        warnings.warn(
            f"trajectory {i} ends after {int(terms[i])} terms, where discount**T is still {tail.max():.2f}: it is "
            "taken to stand for an endless one; record longer ones, give a horizon, or mark where it ends terminal",
            UserWarning,
            stacklevel=3,
        )
    share[cut] = 1.0 - tail
    return share


@dataclass(frozen=True)
class _Moves:
    """The possible moves s → s', sorted by key s·S + s'."""

    keys: Ints
    action: Ints  # the lowest action that makes the move
    ambiguous: npt.NDArray[np.bool_]  # several actions make it, and their features differ


def _moves(mdp: MDP) -> _Moves:
    def build() -> _Moves:
        coo = mdp.transitions.tocoo()
        rows = coo.row.astype(np.int64)
        key = (rows // mdp.n_actions) * mdp.n_states + coo.col
        order = np.argsort(key, kind="stable")
        keys, first, size = np.unique(key[order], return_index=True, return_counts=True)
        ambiguous = size > 1
        if mdp.state_action:
            leader = np.repeat(rows[order][first], size)
            gap = mdp.feature_rows[rows[order]] - mdp.feature_rows[leader]
            differs = np.asarray(abs(gap).sum(axis=1)).ravel() > 0
            ambiguous = np.logical_or.reduceat(differs, first) if keys.size else ambiguous
        return _Moves(keys, rows[order][first] % mdp.n_actions, ambiguous)

    return mdp.memo("moves", build)


def step_actions(mdp: MDP, trajectories: Trajectories) -> Ints:
    """The action of every step: the recorded ones, or those that the moves imply.

    Where several actions make a move and their features differ, nothing can be implied: an error.
    """
    if trajectories.actions is not None:
        return trajectories.actions
    moves, key = _moves(mdp), _move_keys(mdp, trajectories)
    at = np.searchsorted(moves.keys, key)
    if np.any(moves.ambiguous[at]):
        i, t = trajectories.locate(int(np.flatnonzero(trajectories.leaves)[np.argmax(moves.ambiguous[at])]))
        raise ValueError(
            f"trajectory {i}, step {t}: several actions with different features lead from state "
            f"{trajectories.states[trajectories.offsets[i] + t]} to the next one: give the trajectories' actions"
        )
    return moves.action[at]


def _move_keys(mdp: MDP, trajectories: Trajectories) -> Ints:
    left = np.flatnonzero(trajectories.leaves)
    return trajectories.states[left] * mdp.n_states + trajectories.states[left + 1]


def check_trajectories(mdp: MDP, trajectories: Trajectories, name: str = "trajectories") -> None:
    """Raise a ValueError that names trajectory and step where `trajectories` cannot come from `mdp`."""
    if not isinstance(mdp, MDP):
        raise TypeError(f"expected an MDP, not {type(mdp).__name__}")
    if not isinstance(trajectories, Trajectories):
        raise TypeError(
            f"{name} must be Trajectories, not {type(trajectories).__name__}: use Trajectories.from_lists([[...], ...])"
        )
    if len(trajectories) == 0:
        return
    _check_range(mdp, trajectories, name)
    _check_ends(mdp, trajectories, name)
    _check_moves(mdp, trajectories, name)
    _check_lengths(mdp, trajectories, name)


def _fail(trajectories: Trajectories, name: str, entry: int, message: str) -> None:
    i, t = trajectories.locate(entry)
    raise ValueError(f"{name}: trajectory {i}, step {t}: {message}")


def _first(flags: npt.NDArray[Any]) -> int | None:
    return int(np.argmax(flags)) if flags.any() else None


def _check_range(mdp: MDP, trajectories: Trajectories, name: str) -> None:
    states, actions, goals = trajectories.states, trajectories.actions, trajectories.goals
    at = _first((states < 0) | (states >= mdp.n_states))
    if at is not None:
        _fail(trajectories, name, at, f"state {states[at]} is not one of 0 … {mdp.n_states - 1}")
    if actions is not None:
        at = _first((actions < 0) | (actions >= mdp.n_actions))
        if at is not None:
            entry = int(np.flatnonzero(trajectories.leaves)[at])
            _fail(trajectories, name, entry, f"action {actions[at]} is not one of 0 … {mdp.n_actions - 1}")
    if goals is not None:
        if mdp.horizon is not None:
            raise ValueError(
                f"{name} have goals, but the MDP has horizon={mdp.horizon}: a trajectory with a goal ends there, "
                "use horizon=None"
            )
        at = _first(goals != trajectories.last)
        if at is not None:
            raise ValueError(
                f"{name}: trajectory {at} ends in state {trajectories.last[at]}, not in its goal {goals[at]}"
            )


def _check_ends(mdp: MDP, trajectories: Trajectories, name: str) -> None:
    states, left = trajectories.states, trajectories.leaves
    at = _first(left & mdp.terminal[states])
    if at is not None:
        _fail(trajectories, name, at, f"it goes on after terminal state {states[at]}: cut it there")
    ending = np.zeros(states.size, dtype=bool)
    if trajectories.goals is not None:
        goal = np.repeat(trajectories.goals, trajectories.lengths)
        at = _first(left & (states == goal))
        if at is not None:
            _fail(trajectories, name, at, f"it goes on after its goal {states[at]}: cut it there")
        ending = states == goal
    stuck = ~mdp.allowed.any(axis=1) & ~mdp.terminal
    at = _first(stuck[states] & ~ending)
    if at is not None:
        _fail(
            trajectories,
            name,
            at,
            f"state {states[at]} has no allowed action and is not terminal: make it terminal",
        )


def _check_moves(mdp: MDP, trajectories: Trajectories, name: str) -> None:
    left, states = np.flatnonzero(trajectories.leaves), trajectories.states
    if left.size == 0:
        return
    if trajectories.actions is None:
        keys, wanted = _moves(mdp).keys, _move_keys(mdp, trajectories)
    else:
        keys = entry_keys(mdp)
        wanted = (states[left] * mdp.n_actions + trajectories.actions) * mdp.n_states + states[left + 1]
    position = np.minimum(np.searchsorted(keys, wanted), max(keys.size - 1, 0))
    at = _first(keys[position] != wanted) if keys.size else 0
    if at is not None:
        entry = int(left[at])
        by = "" if trajectories.actions is None else f" by action {trajectories.actions[at]}"
        _fail(
            trajectories,
            name,
            entry,
            f"the move from state {states[entry]} to {states[entry + 1]}{by} has probability 0 in the MDP",
        )


def entry_keys(mdp: MDP) -> Ints:
    """row·S + column of every stored probability, found once; sorted, since the matrix is."""

    def build() -> Ints:
        rows = np.repeat(np.arange(mdp.transitions.shape[0], dtype=np.int64), np.diff(mdp.transitions.indptr))
        return np.asarray(rows * mdp.n_states + mdp.transitions.indices)

    return mdp.memo("entry keys", build)


def _check_lengths(mdp: MDP, trajectories: Trajectories, name: str) -> None:
    ended = mdp.terminal[trajectories.last]
    if mdp.horizon is not None:
        lengths = trajectories.lengths
        wrong = (lengths > mdp.horizon) | ((lengths < mdp.horizon) & ~ended)
        if wrong.any():
            i = int(np.argmax(wrong))
            raise ValueError(
                f"{name}: trajectory {i} has {lengths[i]} states, but horizon={mdp.horizon}: a trajectory has that "
                "many, or ends earlier in a terminal state"
            )
    elif mdp.discount == 1.0 and trajectories.goals is None and not ended.all():
        i = int(np.argmin(ended))
        raise ValueError(
            f"{name}: trajectory {i} ends in state {trajectories.last[i]}, which is not terminal: with discount=1 and "
            "no horizon a trajectory must end in a terminal state or have a goal"
        )
