"""Checks of columns, written once: the same code stops at the first fault, or collects all of them.

A check hands every fault to `Faults`, which raises it (`read_problem`) or keeps it (`check_problem`). A check that goes
on after a fault returns a value that nobody may use; whoever puts a problem together asks `faults.found` first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from messirl.io.errors import InputError
from messirl.io.tables import NUMBER, Array, Bools, Column, Table, floats, matches
from messirl.problem.mdp import Floats
from messirl.problem.trajectories import Ints

LIMIT = 20  # faults of one kind that are spelt out
ANY = int(np.iinfo(np.int64).max)  # how many there are is not known
SMALL_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"  # whole numbers that surely fit 64 bits
WRITE_WHOLE = "write whole numbers, without a decimal point (pandas: astype('Int64')), or labels of text"

T = TypeVar("T")


class Faults:
    """What is wrong: raised at once, or collected."""

    def __init__(self, *, collect: bool = False) -> None:
        self.collect = collect
        self.found: list[InputError] = []

    def add(self, error: InputError) -> None:
        if not self.collect:
            raise error
        self.found.append(error)

    def attempt(self, function: Callable[..., T], *arguments: Any) -> T | None:
        """What the function returns, or None if it raised an InputError."""
        try:
            return function(*arguments)
        except InputError as error:
            self.add(error)
            return None

    def rows(self, where: str, wrong: Bools, say: Callable[[int], str], remedy: str) -> None:
        """One fault for each row that is wrong, the first ones spelt out."""
        at = np.flatnonzero(wrong)
        for row in at[:LIMIT]:
            self.add(InputError(where, say(int(row)), remedy, int(row)))
        if at.size > LIMIT:
            self.add(InputError(where, f"… and {at.size - LIMIT} more rows like this", remedy))


@dataclass(frozen=True, eq=False)
class Ids:
    """What a table calls things: 0 … n − 1, or `labels` (text, or whole numbers) in the order of their indices."""

    noun: str
    n: int
    labels: Any = None  # pyarrow array

    @classmethod
    def of(cls, noun: str, n: int, labels: Array | None) -> Ids:
        """Ids of a problem; labels that are not whole numbers are known by their text."""
        if labels is None:
            return cls(noun, n)
        return cls(noun, n, pa.array(labels if labels.dtype.kind == "i" else [str(label) for label in labels.tolist()]))

    @property
    def numbered(self) -> bool:
        return self.labels is None or not pa.types.is_string(self.labels.type)

    def array(self) -> Array | None:
        """The labels, or None."""
        if self.labels is None:
            return None
        return np.asarray(self.labels) if self.numbered else np.array(self.labels.to_pylist(), dtype=object)

    def find(self, faults: Faults, table: Table, name: str, *, null_ok: bool = False) -> Ints:
        """Index of every cell of a column; −1 where it is empty, or (a fault) unknown."""
        column = faults.attempt(table.column, name)
        if column is None:
            return np.full(table.n_rows, -1)
        if not null_ok:
            missing(faults, table, name, column)
        expected = "whole" if self.numbered else "text"
        if table.typed and column.kind not in (expected, "empty"):
            what = f"column {name!r} holds {_KINDS[column.kind]}, not {_KINDS[expected]}"
            remedy = f"{WRITE_WHOLE}, as the other tables do"
            faults.add(InputError(table.where, what, remedy, _first(~column.null)))
            return np.full(table.n_rows, -1)
        index = self._index(column)
        known = f"is not a known {self.noun}"
        if self.labels is None:
            known = "is not one of 0, 1, 2, …" if self.n == ANY else f"is not one of 0 … {self.n - 1}"
        remedy = f"correct it, or add the {self.noun}"
        faults.rows(table.where, (index < 0) & ~column.null, lambda row: f"{name} {column.show(row)} {known}", remedy)
        return index

    def _index(self, column: Column) -> Ints:
        index = np.full(column.null.size, -1, dtype=np.int64)
        if column.kind == "empty":
            return index
        if not self.numbered:
            found = pc.fill_null(pc.index_in(column.text, value_set=self.labels), -1)
            return np.where(column.null, -1, np.asarray(found, dtype=np.int64))
        good = ~column.null
        numbers = column.values
        if column.kind != "whole":
            good &= matches(column.text, SMALL_WHOLE)
            numbers = index.copy()
            numbers[good] = np.asarray(column.text.filter(pa.array(good)).cast(pa.int64()))
        if self.labels is None:
            return np.where(good & (numbers >= 0) & (numbers < self.n), numbers, -1)
        found = pc.fill_null(pc.index_in(pa.array(numbers, pa.int64()), value_set=self.labels), -1)
        return np.where(good, np.asarray(found, dtype=np.int64), -1)


_KINDS = {
    "whole": "whole numbers",
    "number": "decimal numbers",
    "flag": "booleans",
    "text": "text",
    "time": "times",
    "huge": "whole numbers too large for 64 bits",
    "empty": "nothing",
}


def has_columns(faults: Faults, table: Table, *names: str) -> bool:
    """Whether the columns are there; each that is not is a fault."""
    lacking = [name for name in names if name not in table.cells]
    for name in lacking:
        there = ", ".join(repr(known) for known in table.names[:12]) or "none"
        faults.add(InputError(table.where, f"column {name!r} is missing (there are {there})", "add it, or rename one"))
    return not lacking


def missing(faults: Faults, table: Table, name: str, column: Column) -> None:
    """A fault for every empty cell."""
    faults.rows(table.where, column.null, lambda row: f"{name} is empty", "fill it in, or drop the row")


def id_column(faults: Faults, table: Table, name: str) -> Column | None:
    """A column that says what things are called: whole numbers or text, nothing empty; None if it is anything else."""
    column = faults.attempt(table.column, name)
    if column is None:
        return None
    if column.kind == "empty" and table.n_rows == 0:
        return Column("whole", np.zeros(0, dtype=np.int64), column.null, column.text)
    if column.kind not in ("whole", "text"):
        what = f"column {name!r} holds {_KINDS[column.kind]}"
        faults.add(InputError(table.where, what, WRITE_WHOLE, _first(~column.null)))
        return None
    if column.null.any():
        missing(faults, table, name, column)
        return None
    if column.kind == "text":
        blank = np.asarray(pc.equal(column.text, ""))
        faults.rows(table.where, blank, lambda row: f"{name} is an empty text", "give it a label")
    return column


def numbers(faults: Faults, table: Table, name: str, *, null_ok: bool = False) -> Floats:
    """A column of finite numbers; booleans count as 0 and 1. NaN where a cell is empty."""
    column = faults.attempt(table.column, name)
    if column is None:
        return np.full(table.n_rows, np.nan)
    if column.kind in ("text", "huge", "time") and table.n_rows:
        values = np.full(table.n_rows, np.nan)
        good = np.zeros(table.n_rows, dtype=bool)
        if column.text is not None and not (table.typed and column.kind == "text"):
            good = matches(column.text, NUMBER)
            values[good] = floats(column.text.filter(pa.array(good)))
        remedy = "write a number there"
        wrong = ~good & ~column.null
        faults.rows(table.where, wrong, lambda row: f"{name} holds {column.show(row)}, not a number", remedy)
    elif column.kind == "empty":
        values = np.full(table.n_rows, np.nan)
    else:
        values = np.where(column.null, np.nan, column.values.astype(np.float64))
    empty = column.null if column.kind != "number" else np.isnan(values)
    if not null_ok:
        faults.rows(table.where, empty, lambda row: f"{name} is empty or not a number", "fill it in")
    remedy = "write a finite number"
    faults.rows(table.where, np.isinf(values), lambda row: f"{name} is {values[row]}", remedy)
    return values


def flags(faults: Faults, table: Table, name: str) -> Bools:
    """A column of booleans, or of 0 and 1."""
    column = faults.attempt(table.column, name)
    if column is None:
        return np.zeros(table.n_rows, dtype=bool)
    missing(faults, table, name, column)
    wrong = ~column.null
    if column.kind in ("flag", "whole"):
        wrong &= (column.values != 0) & (column.values != 1)
    remedy = "write true or false"
    faults.rows(table.where, wrong, lambda row: f"{name} holds {column.show(row)}, not a boolean", remedy)
    return np.asarray(column.values == 1, dtype=bool)


def texts(faults: Faults, table: Table, name: str) -> list[str] | None:
    """A column of text, nothing empty."""
    column = faults.attempt(table.column, name)
    if column is None:
        return None
    missing(faults, table, name, column)
    if column.text is None and column.kind != "empty":
        what = f"column {name!r} holds {_KINDS[column.kind]}"
        faults.add(InputError(table.where, what, "write text", 0))
    if column.text is None or column.null.any():
        return None
    return list(column.text.to_pylist())


def repeated(values: npt.NDArray[Any]) -> Bools:
    """Which entries have occurred before."""
    order = np.argsort(values, kind="stable")
    again = np.zeros(values.size, dtype=bool)
    again[order[1:]] = values[order[1:]] == values[order[:-1]]
    return again


def codes(column: Column) -> npt.NDArray[np.int64]:
    """Whole numbers that are equal where the cells of an id column are."""
    if column.kind == "whole":
        return column.values
    return np.asarray(column.text.dictionary_encode().indices, dtype=np.int64)


def _first(flags: Bools) -> int | None:
    return int(np.argmax(flags)) if flags.any() else None
