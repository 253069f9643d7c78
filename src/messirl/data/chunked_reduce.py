"""Passes over the rows of a table that compute a total, results per row, or both.

    work(rows, *along) → (total, each)     total: an array to be added, or None; each: one entry per row, or None

A table is an array, or used like one (spill.py). Where its rows are on a cluster (distributed_table.py), the pass is
made there, block by block, and only the sums are returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from messirl._types import Floats

PIECE = 400_000  # numbers of a piece of a table, which should stay in the processor's cache

Found = tuple[Any, Any]  # a total and the results per row; either may be None
Work = Callable[..., Found]


def pieces(n: int, width: int, size: int | None = None) -> Iterator[slice]:
    """Yield slices that cover n rows of a table with `width` columns, each of about `size` numbers (None: PIECE)."""
    height = max(1, (PIECE if size is None else size) // max(1, width))
    for lo in range(0, n, height):
        yield slice(lo, min(lo + height, n))


@dataclass(frozen=True, eq=False)
class TablePass:
    """A pass over a table, in pieces sized for `width` numbers per row."""

    work: Work
    width: int

    def __call__(self, table: Any, along: Sequence[Any] = ()) -> Found:
        """Return the result; `along` are arrays with one entry per row, of which `work` gets the same piece."""
        return add_results(
            self.work(table[part], *(one[part] for one in along)) for part in pieces(len(table), self.width)
        )


def run_pass(work: Work, table: Any, width: int, along: Sequence[Any] = ()) -> Found:
    """Return the result of a pass over a table, wherever its rows are."""
    sweep = TablePass(work, width)
    there = getattr(table, "run_pass", None)
    return sweep(table, along) if there is None else there(sweep, along)


def add_results(several: Any) -> Found:
    """Add the totals, and concatenate the results per row."""
    total, each = None, []
    for one, some in several:
        total = one if total is None else total + one
        if some is not None:
            each.append(some)
    return total, np.concatenate(each) if each else None


def summed(table: Any) -> Floats:
    """Return the sum over the rows of a table, (d,)."""
    return np.asarray(run_pass(_sum, table, table.shape[1])[0])


def _sum(rows: Floats) -> Found:
    return rows.sum(axis=0), None
