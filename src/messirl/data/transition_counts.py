"""Counts of the transitions (s, a, s') of trajectories, and the transitions that are possible.

Where no actions are recorded and transitions are deterministic, each transition from a state is an action of its own:
action k of state s leads to the k-th next state of s in order, among those seen or, with a graph, among the graph's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from messirl._checks import check_integer
from messirl._types import Ints
from messirl.data.trajectories import Trajectories
from messirl.data.transition_index import look_up


@dataclass(frozen=True)
class TransitionCounts:
    """Transition counts, sparse (S·A, S), and 1 for each possible transition, or None if these are unknown."""

    n_states: int
    n_actions: int
    counts: sp.csr_array
    possible: sp.csr_array | None


def count_transitions(
    trajectories: Trajectories,
    features: Any,
    n_states: int | None,
    n_actions: int | None,
    graph: Any,
    deterministic: bool,
) -> TransitionCounts:
    """Count and check the transitions; arguments as for `counted_mdp`."""
    left = np.flatnonzero(trajectories.leaves)
    if left.size == 0:
        raise ValueError("there are no transitions: give at least one trajectory of two states")
    shape = features.shape if sp.issparse(features) else np.shape(features)
    if len(shape) < 2:
        raise ValueError(f"features have shape {shape}: give (S, d), or (S, A, d) for state-action features")
    size = int(shape[0]) if n_states is None else check_integer("n_states", n_states)
    every = np.arange(trajectories.states.size)
    _check_range(trajectories, every, trajectories.states, size, "state", ": features need one row for every state")
    source, target = trajectories.states[left], trajectories.states[left + 1]
    table = None if graph is None else _graph(graph, size)

    wanted = None if n_actions is None else check_integer("n_actions", n_actions)
    if wanted is None and len(shape) == 3:
        wanted = int(shape[1])
    elif wanted is None and sp.issparse(features) and shape[0] > size:  # state-action features, with row s·A + a
        wanted = int(shape[0]) // size

    possible: sp.csr_array | None
    if trajectories.actions is None:
        if not deterministic:
            raise ValueError(
                "the trajectories have no actions, and with deterministic=False they cannot be inferred: record the "
                "actions, or use deterministic=True to make each transition an action of its own"
            )
        possible = _own_actions(tally(source, target, (size, size)) if table is None else table, wanted, size)
        n = possible.shape[0] // size
        actions = _actions_of(possible, trajectories, left)
    else:
        actions = trajectories.actions
        if wanted is None:
            wanted = table.shape[0] // size if table is not None and table.shape[0] > size else int(actions.max()) + 1
        n = wanted
        _check_range(trajectories, left, actions, n, "action")
        possible = None if table is None else _by_action(table, n, size)
        if possible is not None:
            _check_possible(possible, source * n + actions, trajectories, left)
    return TransitionCounts(size, n, tally(source * n + actions, target, (size * n, size)), possible)


def tally(rows: Ints, columns: Ints, shape: tuple[int, int]) -> sp.csr_array:
    """Count how often each (row, column) occurs."""
    return sp.csr_array(sp.coo_array((np.ones(rows.size), (rows, columns)), shape=shape))


def fail(trajectories: Trajectories, entry: int, message: str) -> NoReturn:
    """Raise a ValueError that names the trajectory and the step."""
    i, t = trajectories.locate(entry)
    raise ValueError(f"trajectory {i}, step {t}: {message}")


def _check_range(trajectories: Trajectories, entries: Ints, values: Ints, n: int, noun: str, why: str = "") -> None:
    """Refuse states or actions outside 0 … n − 1."""
    wrong = (values < 0) | (values >= n)
    if wrong.any():
        at = int(np.argmax(wrong))
        fail(trajectories, int(entries[at]), f"{noun} {values[at]} is not one of 0 … {n - 1}{why}")


def _graph(graph: Any, size: int) -> sp.csr_array:
    """Return 1 for every possible transition, sparse with S or S·A rows."""
    table = sp.csr_array(graph if sp.issparse(graph) else np.atleast_2d(np.asarray(graph)))
    if table.shape[1] != size or table.shape[0] == 0 or table.shape[0] % size:
        raise ValueError(
            f"graph has shape {table.shape}: give ({size}, {size}), or ({size}*A, {size}) with row s*A + a"
        )
    rows, columns = table.nonzero()
    return tally(rows, columns, table.shape)


def _by_action(table: sp.csr_array, n_actions: int, size: int) -> sp.csr_array:
    if table.shape[0] == size * n_actions:
        return table
    if table.shape[0] == size:
        return sp.csr_array(sp.kron(table, np.ones((n_actions, 1))))
    raise ValueError(
        f"graph has {table.shape[0]} rows, but there are {size} states and {n_actions} actions: give {size} or "
        f"{size * n_actions}"
    )


def _own_actions(table: sp.csr_array, n_actions: int | None, size: int) -> sp.csr_array:
    """Return (S·A, S) with one next state per row, from a graph (S, S), or a graph by action that already is so."""
    degree = np.diff(table.indptr)
    most = int(degree.max())
    if table.shape[0] > size:
        if most > 1:
            s, a = divmod(int(np.argmax(degree)), table.shape[0] // size)
            raise ValueError(
                f"the trajectories have no actions, and in the graph action {a} of state {s} may lead to several "
                "states: record the actions, or give a graph (S, S) to make each transition an action of its own"
            )
        return table if n_actions is None else _by_action(table, n_actions, size)
    n = most if n_actions is None else n_actions
    if n < most:
        raise ValueError(
            f"state {int(np.argmax(degree))} has {most} next states, each an action of its own, but there are only "
            f"{n} actions: raise n_actions, or record the actions"
        )
    rank = np.arange(table.nnz) - np.repeat(table.indptr[:-1], degree)
    return tally(np.repeat(np.arange(size), degree) * n + rank, table.indices, (size * n, size))


def _actions_of(possible: sp.csr_array, trajectories: Trajectories, left: Ints) -> Ints:
    """Return the lowest action that makes each transition."""
    size = possible.shape[1]
    n = possible.shape[0] // size
    rows = np.repeat(np.arange(possible.shape[0]), np.diff(possible.indptr))
    keys, first = np.unique((rows // n) * size + possible.indices, return_index=True)
    moves = trajectories.states[left] * size + trajectories.states[left + 1]
    return np.asarray(rows[first][_find(keys, moves, trajectories, left)] % n)


def _check_possible(possible: sp.csr_array, rows: Ints, trajectories: Trajectories, left: Ints) -> None:
    size = possible.shape[1]
    keys = np.repeat(np.arange(possible.shape[0]), np.diff(possible.indptr)) * size + possible.indices
    _find(np.sort(keys), rows * size + trajectories.states[left + 1], trajectories, left)


def _find(keys: Ints, wanted: Ints, trajectories: Trajectories, left: Ints) -> Ints:
    """Return the position of each transition among the sorted keys of the possible ones; refuse impossible ones."""
    at, there = look_up(keys, wanted)
    if not there.all():
        k = int(np.argmin(there))
        here, to = trajectories.states[left[k]], trajectories.states[left[k] + 1]
        by = "" if trajectories.actions is None else f" by action {trajectories.actions[k]}"
        what = f"the transition from state {here} to {to}{by} is not in the graph"
        fail(trajectories, int(left[k]), f"{what}: add it, or correct the trajectory")
    return at
