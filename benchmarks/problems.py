"""The problem everything is measured on: a slippery N×N grid with 64 features."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from messirl import MDP

SUCCESS = 0.7
MACRO = 8  # macro-cells a side: 8·8 = 64 features
N_ACTIONS = 4  # east, west, north, south


def transitions(side: int) -> sp.csr_array:
    """p(s'|s,a) with row s·A + a: the move meant with 0.7, each other one with 0.1; who walks into a wall stays."""
    state = np.arange(side * side)
    x, y = state % side, state // side
    steps = ((1, 0), (-1, 0), (0, 1), (0, -1))
    entered = [np.clip(y + dy, 0, side - 1) * side + np.clip(x + dx, 0, side - 1) for dx, dy in steps]
    rows, columns, data = [], [], []
    for meant in range(N_ACTIONS):
        for made in range(N_ACTIONS):
            rows.append(state * N_ACTIONS + meant)
            columns.append(entered[made])
            data.append(np.full(state.size, SUCCESS if made == meant else (1.0 - SUCCESS) / (N_ACTIONS - 1)))
    entries = (np.concatenate(data), (np.concatenate(rows), np.concatenate(columns)))
    return sp.csr_array(sp.coo_array(entries, shape=(state.size * N_ACTIONS, state.size)))


def macro_cells(side: int) -> np.ndarray:
    """(S, 64): which of the 8×8 macro-cells a state lies in."""
    state = np.arange(side * side)
    cell = (state // side * MACRO // side) * MACRO + state % side * MACRO // side
    return np.eye(MACRO * MACRO)[cell]


def corner(side: int) -> np.ndarray:
    """Uniform over the macro-cell in a corner."""
    inside = macro_cells(side)[:, 0]
    return inside / inside.sum()


def grid(side: int, *, discount: float, horizon: int | None) -> MDP:
    """The grid, built sparse."""
    return MDP(transitions(side), macro_cells(side), start=corner(side), discount=discount, horizon=horizon)


def dense_rows(mdp: MDP) -> np.ndarray:
    """The same dynamics as a dense (S·A, S) array, for those who need one."""
    return mdp.transitions.toarray()


def true_theta(seed: int = 0) -> np.ndarray:
    """Weights of the 64 features, of a size that makes some actions clearly better."""
    return np.random.default_rng(seed).normal(scale=0.5, size=MACRO * MACRO)
