"""Many rewards of one problem at once, in the lanes of lanes.py.

This is for problems without a horizon, with γ < 1 and features of states.

What a model found last, values and visits, is where its lane begins, as when it is asked alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from messirl._types import Flags, Floats, Ints
from messirl.planning.lanes import DEAD, ENDS, MOVES, L, collect_lanes, rewards_lanes, solve_lanes, visits_lanes
from messirl.planning.models import Planner
from messirl.planning.solution import Visits
from messirl.planning.stationary import StationaryModel
from messirl.planning.structure import structure_of
from messirl.problem.mdp import MDP

MOST_STATES = 20_000  # beyond, vectors of all lanes leave the cache, and one problem at a time is as quick


def in_lanes(planner: Planner) -> bool:
    """Whether what is asked of a planner can be found in a lane."""
    mdp = planner.mdp
    return (
        type(planner.model) is StationaryModel
        and planner.model.goal is None
        and planner.model.within is None
        and planner.source is None
        and mdp.discount < 1.0
        and not mdp.state_action
        and mdp.n_states <= MOST_STATES
        and not planner.start[~planner.model.structure.alive].any()  # which is an error, and says so elsewhere
    )


def expectations(planners: Sequence[Planner], thetas: Sequence[Floats]) -> list[tuple[float, Floats, Visits] | None]:
    """log Z averaged over the starts, expected counts and visits of each planner at its θ; None where a lane failed.

    All planners are of one MDP, and `in_lanes`.
    """
    mdp, found = planners[0].mdp, []
    for first in range(0, len(planners), L):
        found += _one_batch(mdp, planners[first : first + L], thetas[first : first + L])
    return found


def _one_batch(mdp: MDP, planners: Sequence[Planner], thetas: Sequence[Floats]) -> list[Any]:
    models: list[Any] = [planner.model for planner in planners]
    spare = [0] * (L - len(planners))  # lanes without a problem of their own repeat the first
    lanes = [*range(len(planners)), *spare]
    nothing = np.zeros(mdp.n_states)
    begin = [
        model.recalled(planner.start) or (nothing, nothing) for model, planner in zip(models, planners, strict=True)
    ]
    values, visits = (_side_by_side([begin[k][part] for k in lanes]) for part in (0, 1))
    theta, source = _side_by_side([thetas[k] for k in lanes]), _side_by_side([planners[k].start for k in lanes])
    counts = np.zeros((mdp.n_features, L))
    total, solved = _evaluate(mdp, theta, source, values, visits, counts)
    own = [np.ascontiguousarray(table.T) for table in (values, visits, counts)]
    out: list[Any] = []
    for k, (planner, model) in enumerate(zip(planners, models, strict=True)):
        if solved[k] and np.isfinite(total[k] + visits[:, k].sum()):
            of_states, often, collected = (table[k] for table in own)
            model.remember(of_states, planner.start, often)
            out.append((float(total[k]), collected, Visits(often, None)))
        else:
            out.append(None)
    return out


def _evaluate(
    mdp: MDP, theta: Floats, source: Floats, values: Floats, visits: Floats, counts: Floats
) -> tuple[Floats, Flags]:
    """Σ_s source(s) V(s) (L,) and which lanes are solved; values and visits (S, L) and counts (d, L) are filled in."""
    moves, base, kind, discount = _dynamics(mdp)
    reward, room = np.zeros_like(values), np.empty((7, *values.shape))
    places, weights = np.empty((moves[6].size - 1, L)), np.empty((moves[5].size, L))
    rewards_lanes(*_features(mdp), theta, reward)
    solved = solve_lanes(moves, base, kind, discount, reward, values, weights, places, room)
    visits_lanes(moves, weights, discount, source, visits, solved, places, room)
    return collect_lanes(*_features(mdp), source, values, visits, counts), solved


def _side_by_side(columns: Sequence[Floats]) -> Floats:
    return np.ascontiguousarray(np.array(columns).T)


def _features(mdp: MDP) -> tuple[Any, ...]:
    """The features as the rows of a sparse matrix."""

    def build() -> tuple[Any, ...]:
        rows = sp.csr_array(mdp.features)
        return rows.indptr.astype(np.int64), rows.indices.astype(np.uint32), rows.data.astype(np.float64)

    return mdp.memo("features of lanes", build)


def _dynamics(mdp: MDP) -> tuple[Any, ...]:
    """The moves, what every choice is worth besides its reward, what each state does, and the discount."""

    def build() -> tuple[Any, ...]:
        structure = structure_of(mdp)
        kind = np.where(structure.ends, ENDS, np.where(structure.alive, MOVES, DEAD)).astype(np.int64)
        base = np.zeros(structure.live.shape) if mdp.log_reference is None else mdp.log_reference
        return _moves(mdp), np.where(structure.live, base, -np.inf), kind, mdp.discount

    return mdp.memo("dynamics of lanes", build)


def _moves(mdp: MDP) -> tuple[Any, ...]:
    """Moves in one stage, or in two where that is less work (see lanes.py)."""
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
    """A matrix as the product of one that picks a row, where there is any, and of its distinct rows."""
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
    """The distinct columns of each state's rows, in compressed form, and which of them each entry is."""
    n = rows.shape[0] // n_actions
    state = np.repeat(np.arange(rows.shape[0]) // n_actions, np.diff(rows.indptr))
    distinct, slot = np.unique(state * rows.shape[1] + rows.indices, return_inverse=True)
    pointer = np.searchsorted(distinct, np.arange(n + 1) * rows.shape[1])
    return pointer.astype(np.int64), (distinct % rows.shape[1]).astype(np.uint32), slot.astype(np.uint32)
