"""The penalty of Eq. 5 from blocks of the similarity matrix, so that n² numbers are never held at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from messirl._types import Floats

BLOCK = 2_000_000  # similarities held at once
PIECE = 400_000  # numbers of a piece of a table, which should stay in the processor's cache
EXACT = 30_000  # trajectories up to which a kernel's penalty is exact
ALL = slice(None)
Block = Callable[[Any, Any], Any]  # rows, columns (slices or numbers of trajectories) → that part of the matrix


def strips(n: int) -> Iterator[slice]:
    """Slices that together cover all rows, each with as many as may be held at once."""
    height = max(1, BLOCK // n)
    for lo in range(0, n, height):
        yield slice(lo, min(lo + height, n))


def pieces(n: int, width: int) -> Iterator[slice]:
    """Slices that together cover n rows of a table with `width` columns, for work that goes through it once."""
    height = max(1, PIECE // max(1, width))
    for lo in range(0, n, height):
        yield slice(lo, min(lo + height, n))


def many(n: int) -> bool:
    """Whether there are too many trajectories to compute the similarity of every pair."""
    return n > EXACT


def checked_counts(counts: npt.ArrayLike) -> Floats:
    """Counts as an array (n, d) of finite numbers, n > 0."""
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2 or len(table) == 0:
        raise ValueError(f"counts have shape {table.shape}: give (n, d), at least one trajectory")
    if not np.isfinite(table).all():
        raise ValueError("counts hold a value that is not finite")
    return table


def penalty_from(block: Block, counts: npt.ArrayLike) -> Floats:
    """M = (2/n) Fᵀ (D − W) F of the counts F (n, d), strip by strip of W."""
    table = checked_counts(counts)
    n = len(table)
    centred = table - table.mean(axis=0)  # only differences matter; centring avoids cancellation
    total = np.zeros((table.shape[1], table.shape[1]))
    for rows in strips(n):
        w = block(rows, ALL)
        degree = np.asarray(w.sum(axis=1)).ravel()
        total += centred[rows].T @ (degree[:, None] * centred[rows] - np.asarray(w @ centred))
    return (total + total.T) / n
