"""Batched evaluation: many rewards of one problem at once, in the lanes of kernels/batched_bellman.py.

It covers problems without a horizon, with γ < 1 and features of states. A source of both signs, as for choices, is
split into two of one sign each, as in the first unbatched solve of a model.

Each lane has a warm start at the last values and visits of its model, like an unbatched solve.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from messirl._types import Flags, Floats, Ints
from messirl.data.mdp import MDP
from messirl.planning.infinite_horizon import SignedPart, StationaryModel
from messirl.planning.kernels.batched_bellman import (
    DEAD,
    ENDS,
    MOVES,
    L,
    batch_counts,
    batch_rewards,
    batch_visits,
    solve_batch,
)
from messirl.planning.memory_layout import aligned
from messirl.planning.planner import Planner
from messirl.planning.reachability import structure_of
from messirl.planning.solution import Visits

WIDTHS = (1, 2, 4, 8, L)  # the batch sizes; results do not depend on them, to the last bit
MOST_STATES = 20_000  # for more states the vectors of a batch leave the cache, and unbatched solves are as quick


def can_batch(planner: Planner) -> bool:
    """Return whether a planner can be evaluated in a batch."""
    mdp = planner.mdp
    return (
        type(planner.model) is StationaryModel
        and planner.model.goal is None
        and planner.model.within is None
        and mdp.discount < 1.0
        and not mdp.state_action
        and mdp.n_states <= MOST_STATES
        and not planner.active_source[
            ~planner.model.structure.alive
        ].any()  # an error, which the unbatched solve reports
    )


def batched_expectations(
    planners: Sequence[Planner], thetas: Sequence[Floats]
) -> list[tuple[float, Floats, Visits] | None]:
    """Return Σ source V, expected counts and visits of each planner at its θ; None where a lane failed.

    All planners must share one MDP and satisfy `can_batch`.
    """
    found: list[Any] = [None] * len(planners)
    order = sorted(range(len(planners)), key=lambda k: _distance(planners[k], thetas[k]))
    for first in range(0, len(order), L):
        these = order[first : first + L]
        answers = _one_batch([planners[k] for k in these], [thetas[k] for k in these])
        for k, answer in zip(these, answers, strict=True):
            found[k] = answer
    return found


def _distance(planner: Planner, theta: Floats) -> float:
    """Return the distance of θ from the planner's last θ: batches group lanes that need about equally many steps."""
    if planner.last is None:
        return np.inf
    with np.errstate(invalid="ignore"):
        return float(np.abs(theta - planner.last).max(initial=0.0))


def _one_batch(planners: Sequence[Planner], thetas: Sequence[Floats]) -> list[Any]:
    mdp, models = planners[0].mdp, [cast(StationaryModel, planner.model) for planner in planners]
    m = next(width for width in WIDTHS if width >= len(planners))
    lanes = [*range(len(planners)), *[0] * (m - len(planners))]  # unused lanes repeat the first problem
    nothing = np.zeros(mdp.n_states)
    own = [planner.parts for planner in planners]
    begin = [
        model.recalled(parts) or (nothing, [nothing] * len(parts)) for model, parts in zip(models, own, strict=True)
    ]
    n = max(len(parts) for parts in own)
    parts = [[*own[k], SignedPart(-1.0, 0.0, nothing)][:n] for k in lanes]
    guesses = [[*begin[k][1], nothing][:n] for k in lanes]
    values, asked = _stacked([begin[k][0] for k in lanes]), _stacked([planners[k].active_source for k in lanes])
    sources = [_stacked([lane[i].source for lane in parts]) for i in range(n)]
    visits = [_stacked([lane[i] for lane in guesses]) for i in range(n)]
    solved = _solve(mdp, _stacked([thetas[k] for k in lanes]), sources, values, visits)
    masses = np.array([[lane[i].mass for lane in parts] for i in range(n)])
    net = masses[0] * visits[0] if n == 1 else masses[0] * visits[0] - masses[1] * visits[1]
    counts = np.zeros((mdp.n_features, m))
    total = batch_counts(*_features(mdp), asked, values, net, counts)
    of_states, often, collected, *of_parts = (np.ascontiguousarray(table.T) for table in (values, net, counts, *visits))
    out: list[Any] = []
    for k, (planner, model) in enumerate(zip(planners, models, strict=True)):
        planner.last = thetas[k]
        if solved[k] and np.isfinite(total[k] + often[k].sum()):
            model.remember(of_states[k], own[k], [table[k] for table in of_parts[: len(own[k])]])
            out.append((float(total[k]), collected[k], Visits(often[k], None)))
        else:
            out.append(None)
    return out


def _solve(mdp: MDP, theta: Floats, sources: Sequence[Floats], values: Floats, visits: Sequence[Floats]) -> Flags:
    """Return which lanes were solved, (L,); fill in values (S, L) and the visits (S, L) from each source."""
    moves, base, kind, discount = _dynamics(mdp)
    reward, room = aligned(*values.shape), aligned(7, *values.shape)
    reward[:] = 0.0
    places, weights = (aligned(rows, values.shape[1]) for rows in (moves[6].size - 1, moves[5].size))
    batch_rewards(*_features(mdp), theta, reward)
    solved = solve_batch(moves, base, kind, discount, reward, values, weights, places, room)
    for source, often in zip(sources, visits, strict=True):
        batch_visits(moves, weights, discount, source, often, solved, places, room)
    return np.asarray(solved)


def _stacked(columns: Sequence[Floats]) -> Floats:
    table = aligned(len(columns[0]), len(columns))
    for i, column in enumerate(columns):
        table[:, i] = column
    return table


def _features(mdp: MDP) -> tuple[Any, ...]:
    """Return the features as the rows of a sparse matrix."""

    def build() -> tuple[Any, ...]:
        rows = sp.csr_array(mdp.features)
        return rows.indptr.astype(np.int64), rows.indices.astype(np.uint32), rows.data.astype(np.float64)

    return mdp.memo("features of lanes", build)


def _dynamics(mdp: MDP) -> tuple[Any, ...]:
    """Return the transitions, the terms of every action besides its reward, the kinds of states, and the discount."""

    def build() -> tuple[Any, ...]:
        structure = structure_of(mdp)
        kind = np.where(structure.ends, ENDS, np.where(structure.alive, MOVES, DEAD)).astype(np.int64)
        return _moves(mdp), np.where(structure.live, 0.0, -np.inf), kind

    moves, base, kind = mdp.memo("dynamics of lanes", build)
    return moves, base if mdp.log_reference is None else base + mdp.log_reference, kind, mdp.discount


def _moves(mdp: MDP) -> tuple[Any, ...]:
    """Return the transitions in one stage, or in two where that is less work (see kernels/batched_bellman.py)."""
    rows = sp.csr_array(mdp.transitions)
    place_of, landing = _distinct(rows)
    slots = _slots(rows, mdp.n_actions)
    if landing.nnz + place_of.nnz < slots[0][-1]:
        rows, slots = place_of, _slots(place_of, mdp.n_actions)
    else:
        landing = sp.csr_array((0, mdp.n_states))
    slot_ptr, slot_place, slot = slots
    chances = (rows.indptr.astype(np.int64), rows.indices.astype(np.uint32), rows.data.astype(np.float64), slot)
    lands = (landing.indptr.astype(np.int64), landing.indices.astype(np.uint32), landing.data.astype(np.float64))
    return (*chances, slot_ptr, slot_place, *lands)


def _distinct(rows: sp.csr_array) -> tuple[sp.csr_array, sp.csr_array]:
    """Factor a matrix into a selection of rows and its distinct non-empty rows."""
    first: dict[tuple[bytes, bytes], int] = {}
    kept, picked = [], []
    for row in range(rows.shape[0]):
        part = slice(int(rows.indptr[row]), int(rows.indptr[row + 1]))
        if part.start == part.stop:
            continue
        key = rows.indices[part].tobytes(), rows.data[part].tobytes()
        if key not in first:
            first[key] = len(first)
            kept.append(row)
        picked.append((row, first[key]))
    where = np.array(picked, dtype=np.int64).reshape(-1, 2)
    ones = np.ones(len(picked))
    pick = sp.csr_array((ones, (where[:, 0], where[:, 1])), shape=(rows.shape[0], len(first)))
    return pick, sp.csr_array(rows[np.array(kept, dtype=np.int64)])


def _slots(rows: sp.csr_array, n_actions: int) -> tuple[Ints, Any, Any]:
    """Return the distinct columns of each state's rows, in compressed form, and the index of each entry among them."""
    n = rows.shape[0] // n_actions
    state = np.repeat(np.arange(rows.shape[0]) // n_actions, np.diff(rows.indptr))
    distinct, slot = np.unique(state * rows.shape[1] + rows.indices, return_inverse=True)
    pointer = np.searchsorted(distinct, np.arange(n + 1) * rows.shape[1])
    return pointer.astype(np.int64), (distinct % rows.shape[1]).astype(np.uint32), slot.astype(np.uint32)
