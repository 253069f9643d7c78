"""Room for a table of which more and more rows become known: in memory where it is small, else in a temporary file.

What is needed is known before the work begins, and where there is not so much, an error says how much there is.
"""

from __future__ import annotations

import shutil
import tempfile
from typing import Any

import numpy as np

from messirl._types import Floats

IN_MEMORY = 2**30  # bytes of a table that is held in memory
SPARE = 2**28  # bytes of a disk that are left free
RELEASED = 2**27  # bytes that are read of a file before its pages are given back


class Room:
    """A table (n, d) of numbers, filled from row `free` on; the rows before it are for whoever asked."""

    def __init__(self, n: int, d: int, free: int = 0) -> None:
        self.shape, self.done = (n, d), free
        self._file: Any = None
        if 8 * n * d <= IN_MEMORY:
            self._table: Any = np.empty((n, d))
        else:
            self._file = _file_for(n, d)
            self._table = np.memmap(self._file, dtype=np.float64, mode="r+", shape=(n, d))

    def add(self, rows: Floats) -> None:
        """The next rows."""
        if self.done + len(rows) > self.shape[0]:
            raise ValueError("the files hold more trajectories than when they were counted: let no one write to them")
        self._table[self.done : self.done + len(rows)] = rows
        self.done += len(rows)

    def table(self) -> Floats:
        """The whole of it."""
        if self.done != self.shape[0]:
            raise ValueError("the files hold fewer trajectories than when they were counted: let no one write to them")
        return self._table  # type: ignore[no-any-return]


def _file_for(n: int, d: int) -> Any:
    """A temporary file with room for n · d numbers, which is gone when nobody uses it."""
    needed, folder = 8 * n * d, tempfile.gettempdir()
    there = shutil.disk_usage(folder).free - SPARE
    if needed > there:
        raise MemoryError(
            f"the counts of {n} trajectories and {d} features take {needed / 1e9:.1f} GB, more than the "
            f"{IN_MEMORY / 1e9:.1f} GB that are held in memory and the {max(there, 0) / 1e9:.1f} GB free in {folder}: "
            f"{max(there, IN_MEMORY) // (8 * d)} trajectories would fit; take fewer of them or fewer features, or name "
            "a folder with more space in the environment variable TMPDIR"
        )
    file = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the table
    file.truncate(needed)
    return file
