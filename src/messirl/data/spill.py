"""A table that is filled row by row: in memory if it is small, else in a temporary file.

The space needed is checked before the work begins; if there is too little, an error says how much is available.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from messirl._types import Floats
from messirl.data.distributed_table import CHANGED, DistributedTable

IN_MEMORY = 3 * 2**28  # bytes up to which a table is held in memory
SPARE = 2**28  # bytes of a disk that are left free
COPIED = 2**27  # bytes of a table that may be held twice
PART = 2**24  # bytes of a table that are processed at once


class TableBuilder:
    """A table (n, d) of numbers, filled row by row."""

    def __init__(self, n: int, d: int) -> None:
        self.shape, self.done = (n, d), 0
        self._table: Any = np.empty((n, d)) if 8 * n * d <= IN_MEMORY else FileTable(n, d)

    def add(self, rows: Floats, size: int) -> None:
        """Append the next `size` rows."""
        if self.done + size > self.shape[0]:
            raise ValueError(CHANGED.format("more"))
        self._table[self.done : self.done + size] = rows
        self.done += size

    def table(self) -> Any:
        """Return the complete table, an array or `FileTable`."""
        if self.done != self.shape[0]:
            raise ValueError(CHANGED.format("fewer"))
        return self._table


class FileTable:
    """A table (n, d) in a temporary file, whose rows can be read and written; it is deleted with the object.

    Rows are read on demand. The file is not memory-mapped: each row touched would count as several pages of this
    process, and rows drawn at random soon as the whole file.
    """

    def __init__(self, n: int, d: int) -> None:
        self.shape = (n, d)
        self._file: Any = tempfile.TemporaryFile(dir=_place_for(n, d), buffering=0)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._file.truncate(8 * n * d)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Floats:
        if isinstance(rows, slice) and rows.step in (None, 1):
            lo, hi, _ = rows.indices(len(self))
            found = np.empty((max(hi - lo, 0), self.shape[1]))
            self._pass(self._file.readinto, lo, found)
            return found
        which = np.arange(len(self))[rows] if isinstance(rows, slice) else np.asarray(rows) % len(self)
        found = np.empty((which.size, self.shape[1]))
        for i, row in zip(which.tolist(), found, strict=True):
            self._pass(self._file.readinto, i, row)
        return found

    def __setitem__(self, rows: slice, values: Floats) -> None:
        self._pass(self._file.write, rows.start, np.ascontiguousarray(values, dtype=np.float64))

    def _pass(self, work: Any, row: int, values: Floats) -> None:
        """Read or write these numbers, starting at a row."""
        self._file.seek(8 * self.shape[1] * row)
        left = values.reshape(-1).view(np.uint8).data
        while left:
            left = left[work(left) :]


def stack_tables(head: Floats, tail: Any) -> Any:
    """Return two tables stacked: an array or, where a second copy would be large, an array-like object."""
    if isinstance(tail, DistributedTable):
        return tail.below(head)
    if isinstance(tail, np.ndarray) and tail.nbytes <= COPIED:
        return np.concatenate([head, tail])
    return StackedTable(head, tail)


class StackedTable:
    """A table (l, d) above another one (n, d) without a copy of either; it supports the array operations used here."""

    def __init__(self, head: Floats, tail: Any) -> None:
        self.head, self.tail = head, tail
        self.shape = (len(head) + len(tail), head.shape[1])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Floats:
        l = len(self.head)
        if isinstance(rows, slice):
            lo, hi, step = rows.indices(len(self))
            if step == 1:
                below = self.tail[max(lo - l, 0) : max(hi - l, 0)]
                return np.concatenate([self.head[lo:hi], below]) if lo < l else np.asarray(below)
            rows = np.arange(lo, hi, step)
        which = np.arange(len(self))[rows] if np.asarray(rows).dtype.kind == "b" else np.asarray(rows) % len(self)
        found = np.empty((which.size, self.shape[1]))
        above = which < l
        found[above], found[~above] = self.head[which[above]], self.tail[which[~above] - l]
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        return np.asarray(self[:], dtype=dtype)

    def sum(self, axis: int = 0) -> Floats:
        """Return the sum over the rows, (d,)."""
        assert axis == 0
        total = np.zeros(self.shape[1])
        for part in self._parts():
            total = np.add.reduce(np.vstack([total, part]), axis=0)  # row by row, as for an array
        return total

    def mean(self, axis: int = 0) -> Floats:
        """Return the mean over the rows, (d,)."""
        return self.sum(axis) / len(self)

    def max(self, axis: int = 0) -> Floats:
        """Return the largest entry of each column, (d,)."""
        assert axis == 0
        return np.asarray(np.max([part.max(axis=0) for part in self._parts()], axis=0))

    def min(self, axis: int = 0) -> Floats:
        """Return the smallest entry of each column, (d,)."""
        assert axis == 0
        return np.asarray(np.min([part.min(axis=0) for part in self._parts()], axis=0))

    def _parts(self) -> Iterator[Floats]:
        height = max(1, PART // (8 * self.shape[1]))
        return (self[lo : lo + height] for lo in range(0, len(self), height))


def _place_for(n: int, d: int) -> str:
    """Return the folder of temporary files; raise a MemoryError if it lacks space for n · d numbers."""
    needed, folder = 8 * n * d, tempfile.gettempdir()
    there = max(shutil.disk_usage(folder).free - SPARE, 0)
    if needed > there:
        raise MemoryError(
            f"the counts of {n} trajectories and {d} features take {needed / 1e9:.2g} GB, but at most "
            f"{IN_MEMORY / 1e9:.2g} GB are held in memory and {there / 1e9:.2g} GB are free in {folder}: use at most "
            f"{max(there, IN_MEMORY) // (8 * d)} trajectories or fewer features, or set the environment variable "
            "TMPDIR to a folder with more space"
        )
    return folder
