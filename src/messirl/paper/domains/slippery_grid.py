"""Slippery grids: four actions; each succeeds with some probability, else another is taken. Walls stop a move."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

MOVES = np.array([(0, 1), (0, -1), (-1, 0), (1, 0)])  # up, down, left, right as (dx, dy)
ACTIONS = ("up", "down", "left", "right")


def coordinates(side: int) -> np.ndarray:
    """Return (x, y) of every cell, 0 … side−1, cell y·side + x, y upwards."""
    y, x = np.divmod(np.arange(side * side), side)
    return np.column_stack([x, y])


def slippery(side: int, success: float) -> sp.csr_array:
    """Return transitions (S·4, S): the intended move has probability `success`, each other a third of the rest."""
    at = coordinates(side)
    chance = np.full((4, 4), (1.0 - success) / 3.0)
    np.fill_diagonal(chance, success)
    to = np.clip(at[:, None] + MOVES, 0, side - 1) @ np.array([1, side])  # (S, 4)
    n, width = side * side, 4 * 4
    # Four entries for each of the four rows of a state, written where they belong: no other copy of a large grid.
    indices = np.array(np.broadcast_to(to.astype(np.int32)[:, None, :], (n, 4, 4)), order="C").ravel()
    data = np.array(np.broadcast_to(chance, (n, 4, 4)), order="C").ravel()
    grid = sp.csr_array((data, indices, np.arange(0, n * width + 1, 4, dtype=np.int32)), shape=(n * 4, n))
    grid.sum_duplicates()
    return grid


def tiles(ax: Any, values: Any, label: str) -> None:
    """Draw one number per cell of a square grid, as coloured tiles."""
    side = int(np.sqrt(len(values)))
    size = float(np.abs(values).max())
    table = np.asarray(values, dtype=float).reshape(side, side)
    drawn = ax.imshow(table, origin="lower", cmap="PuOr_r", vmin=-size, vmax=size)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.figure.colorbar(drawn, ax=ax, label=label, shrink=0.85)
