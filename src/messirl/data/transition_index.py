"""Possible transitions of an MDP as sorted keys, among which steps can be looked up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from messirl._types import Flags, Floats, Ints
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories


@dataclass(frozen=True)
class TransitionIndex:
    """Possible transitions s → s', sorted by key s·S + s'."""

    keys: Ints
    action: Ints  # the lowest action that makes the transition
    ambiguous: Flags  # whether several actions make it, with different features


def possible_transitions(mdp: MDP) -> TransitionIndex:
    """Return the possible transitions of an MDP, computed once."""

    def build() -> TransitionIndex:
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
        return TransitionIndex(keys, rows[order][first] % mdp.n_actions, ambiguous)

    return mdp.memo("moves", build)


def look_up(keys: Ints, wanted: Ints) -> tuple[Ints, Flags]:
    """Return the position of each wanted key among sorted ones, and a mask of those found."""
    if not keys.size:
        return np.zeros(wanted.size, dtype=np.int64), np.zeros(wanted.size, dtype=bool)
    at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    return at, np.asarray(keys[at] == wanted)


def transition_keys(mdp: MDP, trajectories: Trajectories) -> Ints:
    """Return s·S + s' of every step."""
    left = np.flatnonzero(trajectories.leaves)
    return trajectories.states[left] * mdp.n_states + trajectories.states[left + 1]


def entry_keys(mdp: MDP) -> Ints:
    """Return row·S + column of every stored probability, computed once; sorted, because the matrix is."""

    def build() -> Ints:
        rows = np.repeat(np.arange(mdp.transitions.shape[0], dtype=np.int64), np.diff(mdp.transitions.indptr))
        return np.asarray(rows * mdp.n_states + mdp.transitions.indices)

    return mdp.memo("entry keys", build)


def transition_probabilities(mdp: MDP, states: Ints, entered: Ints) -> Floats:
    """Return p(s'|s,a) of every step and action, (N, A)."""
    keys, data = entry_keys(mdp), mdp.transitions.data
    out = np.zeros((states.size, mdp.n_actions))
    for a in range(mdp.n_actions):
        at, there = look_up(keys, (states * mdp.n_actions + a) * mdp.n_states + entered)
        out[there, a] = data[at[there]]
    return out
