"""The penalty of Eq. 5 from blocks of the similarity matrix, so that n² numbers are never held at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from messirl._types import Floats
from messirl.data.chunked_reduce import pieces

BLOCK = 2_000_000  # similarities held at once
EXACT = 30_000  # trajectories up to which a kernel's penalty is exact
ALL = slice(None)
Block = Callable[[Any, Any], Any]  # rows, columns (slices or numbers of trajectories) → that part of the matrix


def tiles(n: int) -> Iterator[tuple[slice, slice]]:
    """Yield rows and columns of blocks that cover a matrix (n, n), each as large as may be held at once.

    They are whole rows, or squares for many trajectories: a block of few rows would take more work to prepare than to
    use.
    """
    if not exceeds_exact_limit(n):
        yield from ((rows, ALL) for rows in pieces(n, n, BLOCK))
        return
    side = math.isqrt(BLOCK)
    for rows in pieces(n, side, BLOCK):
        yield from ((rows, columns) for columns in pieces(n, side, BLOCK))


def exceeds_exact_limit(n: int) -> bool:
    """Return True if there are too many trajectories to compute the similarity of every pair."""
    return n > EXACT


def checked_counts(counts: npt.ArrayLike) -> Floats:
    """Return counts as an array (n, d) of finite numbers, n > 0."""
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2 or len(table) == 0:
        raise ValueError(f"counts have shape {table.shape}: give (n, d), at least one trajectory")
    if not np.isfinite(table).all():
        raise ValueError("counts hold a value that is not finite")
    return table


def penalty_from(block: Block, counts: npt.ArrayLike) -> Floats:
    """Return M = (2/n) Fᵀ (D − W) F of the counts F (n, d), tile by tile of W."""
    table = checked_counts(counts)
    n = len(table)
    centred = table - table.mean(axis=0)  # only differences matter; centring avoids cancellation
    total = np.zeros((table.shape[1], table.shape[1]))
    for rows, columns in tiles(n):
        w = block(rows, columns)
        degree = np.asarray(w.sum(axis=1)).ravel()
        total += centred[rows].T @ (degree[:, None] * centred[rows] - np.asarray(w @ centred[columns]))
    return (total + total.T) / n
