"""Parquet files read as one long table, a few rows at a time.

Only the requested columns are read, in batches, so that memory does not depend on the length of the table or the size
of its row groups.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from messirl._memory_guard import DENSEST
from messirl._text import did_you_mean
from messirl.data.errors import InputError

BATCH = 131_072  # rows that are read at once
ROWS = 10_000_000  # rows that a file of any size may claim
CELL = 8  # bytes of a cell in memory, and as many more where it holds text
AGAIN = "write the file again; it may be truncated"
FIRST = 2  # the number of the first row, as a spreadsheet counts it
GIVE = "give a Parquet file, a folder of them, a list of files, or a pyarrow dataset"


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of one file: its name, the number of the first row, and the columns as Arrow arrays by name."""

    file: str
    row: int
    columns: dict[str, Any]

    def error(self, what: str, remedy: str, at: int | None = None) -> InputError:
        """Return an error about the file, or about one of the rows of the batch (0, 1, 2, …)."""
        return InputError(self.file, what, remedy, None if at is None else self.row + at)


class Source:
    """An ordered set of Parquet files, or a pyarrow dataset.

    Paths are a file, a folder with all .parquet files below it, sorted by name, or a list of files and folders.
    """

    def __init__(self, given: Any) -> None:
        self.dataset = given if is_dataset(given) else None
        self.files: list[tuple[str, Path]] = []
        if self.dataset is None:
            several = isinstance(given, Sequence) and not isinstance(given, str)
            for path in given if several else [given]:
                if not isinstance(path, str | os.PathLike):
                    raise TypeError(f"{path!r:.60} is not a source of trajectories: {GIVE}")
                self.files += _files_in(Path(path))
            if not self.files:
                raise ValueError(f"the list of Parquet files is empty: {GIVE}")

    def __repr__(self) -> str:
        if self.dataset is not None:
            return "a dataset"
        return self.files[0][0] if len(self.files) == 1 else f"{len(self.files)} files"

    def parts(self, size: int) -> list[Source]:
        """Return sources of consecutive files, each of about `size` bytes; a dataset is one part."""
        found: list[Source] = []
        full = True
        for name, path in self.files:
            if full:
                found.append(copy(self))
                found[-1].files, held = [], 0
            found[-1].files.append((name, path))
            held += path.stat().st_size
            full = held >= size
        return found or [self]

    def has(self, column: str) -> bool:
        """Return True if the first file, or the dataset, has a column of that name."""
        if self.dataset is not None:
            return column in self.dataset.schema.names
        return column in _opened(*self.files[0]).schema_arrow.names

    def batches(self, columns: Sequence[str], most: int = BATCH) -> Iterator[Batch]:
        """Yield these columns of all rows, in order, at most `most` rows at once."""
        if self.dataset is not None:
            yield from self._from_dataset(list(columns), most)
            return
        for name, path in self.files:
            file = _opened(name, path)
            _check_columns(name, file.schema_arrow.names, columns)
            yield from _numbered(name, file.iter_batches(most, columns=list(columns), use_threads=False))

    def _from_dataset(self, columns: list[str], most: int) -> Iterator[Batch]:
        assert self.dataset is not None
        how = {"columns": columns, "batch_size": most, "use_threads": False}
        how |= {"batch_readahead": 1, "fragment_readahead": 1}
        _check_columns("the dataset", self.dataset.schema.names, columns)
        try:
            parts = list(self.dataset.get_fragments())
        except ValueError:  # filtered: its files cannot be read one by one
            yield from _numbered("the dataset", self.dataset.to_batches(**how))
            return
        for part in parts:
            name = Path(getattr(part, "path", "the dataset")).name
            yield from _numbered(name, part.to_batches(schema=self.dataset.schema, **how))


def is_dataset(given: Any) -> bool:
    """Return True for a pyarrow dataset, without importing pyarrow."""
    return any(kind.__module__ == "pyarrow._dataset" for kind in type(given).__mro__)


def _files_in(path: Path) -> list[tuple[str, Path]]:
    """Return a file, or all files of a folder sorted by name; each with its name in errors."""
    if not path.exists():
        raise InputError(str(path), "does not exist", "correct the path")
    if not path.is_dir():
        return [(path.name, path)]
    found = sorted((file.relative_to(path).as_posix(), file) for file in path.rglob("*.parquet") if file.is_file())
    kept = [(name, file) for name, file in found if not any(part[0] in "._" for part in name.split("/"))]
    if not kept:
        raise InputError(str(path), "contains no .parquet file", GIVE)
    return kept


def _opened(name: str, path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(name, error) from None
    check_claims(name, file.metadata, path.stat().st_size)
    return file


def check_claims(name: str, about: Any, size: int, most: float = math.inf, texts: int = 0) -> None:
    """Raise an InputError if a footer claims more rows than fit a file of this size, or cells beyond `most` bytes.

    texts : number of columns that hold text
    """
    groups = [about.row_group(i) for i in range(about.num_row_groups)]
    rows = sum(group.num_rows for group in groups)
    cells = sum(max(group.column(j).num_values, 0) for group in groups for j in range(group.num_columns))
    if rows != about.num_rows or rows < 0:
        raise InputError(name, "is not a readable Parquet file (its row counts disagree)", AGAIN)
    if rows > ROWS + DENSEST * size or CELL * (cells + texts * rows) > most:
        raise InputError(name, f"claims {rows:,} rows, more than fit into memory or a file of {size:,} bytes", AGAIN)


def _numbered(name: str, batches: Iterator[Any]) -> Iterator[Batch]:
    """Yield the batches of one file, each with the number of its first row."""
    import pyarrow as pa

    row = FIRST
    try:
        for batch in batches:
            yield Batch(name, row, dict(zip(batch.schema.names, batch.columns, strict=True)))
            row += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(name, error) from None


def _unreadable(name: str, error: Exception) -> InputError:
    reason = " ".join(str(error).split())[:200]
    return InputError(name, f"is not a readable Parquet file ({reason})", AGAIN)


def _check_columns(where: str, there: Sequence[str], wanted: Sequence[str]) -> None:
    for name in wanted:
        if name not in there:
            known = ", ".join(repr(other) for other in there[:12]) or "none"
            close = did_you_mean(name, [other for other in there if other not in wanted])
            raise InputError(where, f"column {name!r} is missing (there are {known})", f"add it, or rename one{close}")
