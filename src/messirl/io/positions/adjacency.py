"""Transitions between cells: all between neighbours, or the observed ones; and their transition matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from messirl._types import Floats, Ints
from messirl.io.positions.cell_sequences import CellSequences

SIGNS = {-1: "-", 0: "", 1: "+"}
STAY = "stay"


def observed_transitions(made: CellSequences, n: int) -> tuple[Any, int]:
    """Return the observed transitions (n, n), and the number of cells never left, which get a self-transition."""
    source, target = made.state[:-1][made.goes_on], made.state[1:][made.goes_on]
    stuck = np.setdiff1d(np.arange(n), source)
    source, target = np.append(source, stuck), np.append(target, stuck)
    return sp.csr_array((np.ones(source.size, dtype=bool), (source, target)), shape=(n, n)), stuck.size


def add_self_transitions(near: Any) -> Any:
    """Add a self-transition to every cell."""
    return sp.csr_array(near + sp.eye_array(near.shape[0], dtype=bool, format="csr"))


def transitions(moves: Any, at: Floats | None) -> tuple[Any, list[str] | None]:
    """Return transition probabilities (S·A, S), sparse, all 1, and action names: one action per transition of a cell.

    at : the centres of a lattice, where a direction is the same action everywhere (`+x`, `-x+y`, …); None: the k-th
        transition out of a cell is action k
    """
    n = moves.shape[0]
    coo = moves.tocoo()
    order = np.lexsort((coo.col, coo.row))
    source, target = coo.row[order].astype(np.int64), coo.col[order].astype(np.int64)
    names: list[str] | None = None
    if at is None:
        first = np.searchsorted(source, np.arange(n))
        action: Ints = np.arange(source.size) - first[source]
    else:
        way = np.rint((at[target] - at[source]) / np.abs(at[target] - at[source]).max() * 4).astype(np.int64)
        called = np.array([_direction(*step) for step in np.sign(way).tolist()], dtype=object)
        kinds, action = np.unique(called.astype(str), return_inverse=True)
        names = kinds.tolist()
    n_actions = int(action.max()) + 1
    shape = (n * n_actions, n)
    return sp.csr_array((np.ones(source.size), (source * n_actions + action, target)), shape=shape), names


def _direction(x: int, y: int) -> str:
    return "".join(SIGNS[sign] + axis for sign, axis in ((x, "x"), (y, "y")) if sign) or STAY
