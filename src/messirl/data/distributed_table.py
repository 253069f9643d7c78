"""A table whose rows stay on the cluster that computed them, in blocks; a few blocks may be local.

It is used like an array (as `Stacked` in spill.py), but indexing transfers rows. Sums over all rows do not: each worker
sums its blocks, and the partial sums are added on the cluster as well, a few at a time (chunked_reduce.py). Blocks lost
with a worker are computed again.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from messirl._types import Floats, Ints
from messirl.data.chunked_reduce import Found, TablePass, run_pass, summed
from messirl.parallel import KeptResult

TOGETHER = 16  # partial sums that are added at a time
CHANGED = "the files hold {} trajectories than when they were counted: do not change them during a fit"


class DistributedTable:
    """A table (n, d) in blocks of rows, each an array or a result kept by an executor with `keep`."""

    def __init__(self, executor: Any, d: int, blocks: Sequence[Any] = (), sizes: Sequence[int] = ()) -> None:
        self.executor, self.blocks = executor, list(blocks)
        self.ends = np.cumsum(np.asarray(sizes, dtype=np.int64))
        self.shape = (int(self.ends[-1]) if self.blocks else 0, d)

    def __len__(self) -> int:
        return self.shape[0]

    def below(self, head: Floats) -> DistributedTable:
        """Return the table with other rows above it."""
        sizes = np.diff(self.ends, prepend=0)
        return DistributedTable(self.executor, self.shape[1], [head, *self.blocks], [len(head), *sizes])

    def __getitem__(self, rows: Any) -> Floats:
        if not isinstance(rows, slice):
            rows = np.asarray(rows)
            rows = rows if rows.dtype.kind == "b" else rows % len(self)
        which = np.arange(len(self))[rows]
        block = np.searchsorted(self.ends, which, side="right")
        found, waiting = np.empty((which.size, self.shape[1])), []
        for b in np.unique(block).tolist():
            at = np.flatnonzero(block == b)
            there, lines = self.blocks[b], which[at] - (self.ends[b - 1] if b else 0)
            if isinstance(there, KeptResult):
                waiting.append((at, self.executor.submit(_lines, lines, on=there)))
            else:
                found[at] = there[lines]
        for at, future in waiting:
            found[at] = future.result()
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        return np.asarray(self[:], dtype=dtype)

    def run_pass(self, sweep: TablePass, along: Sequence[Any] = ()) -> Found:
        """Return the result of a pass over the rows, each block processed in place; `along` is sent to it."""
        work = functools.partial(_over_block, sweep)
        here, there, start = [], [], 0
        for block, end in zip(self.blocks, self.ends.tolist(), strict=True):
            some = start, [one[start:end] for one in along]
            if isinstance(block, KeptResult):
                there.append(self.executor.keep(work, some, on=block))
            elif end > start:
                here.append(work(some, block))
            start = end
        while len(there) > 1:
            groups = [there[i : i + TOGETHER] for i in range(0, len(there), TOGETHER)]
            there = [self.executor.keep(_added, None, on=group) for group in groups]
        here += [self.executor.submit(_itself, None, on=last).result() for last in there]
        total, each = _added(None, here)
        return total, np.concatenate([some for _, some in sorted(each, key=lambda one: one[0])]) if each else None

    def sum(self, axis: int = 0) -> Floats:
        """Return the sum over the rows, (d,)."""
        assert axis == 0
        return summed(self)

    def mean(self, axis: int = 0) -> Floats:
        """Return the mean over the rows, (d,)."""
        return self.sum(axis) / len(self)

    def max(self, axis: int = 0) -> Floats:
        """Return the largest entry of each column, (d,)."""
        assert axis == 0
        return np.asarray(run_pass(_largest, self, self.shape[1])[1]).max(axis=0)  # type: ignore[no-any-return]

    def min(self, axis: int = 0) -> Floats:
        """Return the smallest entry of each column, (d,)."""
        assert axis == 0
        return np.asarray(run_pass(_smallest, self, self.shape[1])[1]).min(axis=0)  # type: ignore[no-any-return]


class DistributedTableBuilder:
    """A scattered table under construction: blocks of rows, local or kept elsewhere."""

    def __init__(self, n: int, d: int, executor: Any) -> None:
        self.shape, self.executor = (n, d), executor
        self.blocks: list[Any] = []
        self.sizes: list[int] = []

    def add(self, rows: Any, size: int) -> None:
        """Append the next `size` rows."""
        if size:
            self.blocks.append(rows)
            self.sizes.append(size)

    def table(self) -> DistributedTable:
        """Return the complete table."""
        if sum(self.sizes) != self.shape[0]:
            raise ValueError(CHANGED.format("more" if sum(self.sizes) > self.shape[0] else "fewer"))
        return DistributedTable(self.executor, self.shape[1], self.blocks, self.sizes)


# ------------------------------------------------------------ on a worker


def _over_block(sweep: TablePass, at: tuple[int, Sequence[Any]], block: Floats) -> tuple[Any, list[tuple[int, Any]]]:
    """Make a pass over one block; return its total, and the per-row results with the number of the first row."""
    start, along = at
    total, each = sweep(block, along)
    return total, [] if each is None else [(start, each)]


def _added(_: None, several: Sequence[tuple[Any, list[tuple[int, Any]]]]) -> tuple[Any, list[tuple[int, Any]]]:
    totals = [total for total, _ in several if total is not None]
    return functools.reduce(operator.add, totals) if totals else None, [one for _, each in several for one in each]


def _itself(_: None, found: Any) -> Any:
    return found


def _lines(lines: Ints, block: Floats) -> Floats:
    return block[lines]


def _largest(rows: Floats) -> Found:
    return None, rows.max(axis=0)[None]


def _smallest(rows: Floats) -> Found:
    return None, rows.min(axis=0)[None]
