"""Ids of states, actions and trajectories in tables: numbers or labels."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from messirl._types import Array, Ints
from messirl.io.tables.columns import KINDS, SMALL_WHOLE, WRITE_WHOLE, as_integers, first_of, missing
from messirl.io.tables.error_collector import ErrorCollector
from messirl.io.tables.table import SHOWN, Column, Table, matches

ANY = int(np.iinfo(np.int64).max)  # stands for an unknown number of ids


def _normalised(text: str) -> str:
    """Normalise a label: no invisible characters, combined accents, lower case."""
    seen = "".join(sign for sign in text if unicodedata.category(sign) != "Cf")
    return unicodedata.normalize("NFKC", seen).casefold().strip()


@dataclass(frozen=True, eq=False)
class Ids:
    """Ids in a table: 0 … n − 1, or `labels` (text, or whole numbers) in the order of their indices."""

    noun: str
    n: int
    labels: Any = None  # pyarrow array

    @classmethod
    def of(cls, noun: str, n: int, labels: Array | None) -> Ids:
        """Make the ids of a problem; labels that are not whole numbers become text."""
        if labels is None:
            return cls(noun, n)
        return cls(noun, n, pa.array(labels if labels.dtype.kind == "i" else [str(label) for label in labels.tolist()]))

    @property
    def numbered(self) -> bool:
        """True if the ids are whole numbers."""
        return self.labels is None or not pa.types.is_string(self.labels.type)

    def array(self) -> Array | None:
        """Return the labels, or None."""
        if self.labels is None:
            return None
        return np.asarray(self.labels) if self.numbered else np.array(self.labels.to_pylist(), dtype=object)

    def show(self, index: int) -> str:
        """Return the label of an index for an error message."""
        if self.labels is None:
            return str(index)
        shown = repr(self.labels[index].as_py())
        return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"

    def find(self, faults: ErrorCollector, table: Table, name: str, *, null_ok: bool = False) -> Ints:
        """Return the index of every cell of a column; −1 where it is empty, or (a fault) unknown."""
        column = faults.attempt(table.column, name)
        if column is None:
            return np.full(table.n_rows, -1)
        if not null_ok:
            missing(faults, table, name, column)
        expected = "whole" if self.numbered else "text"
        if self.numbered:
            column = as_integers(column)
        if table.typed and column.kind not in (expected, "empty"):
            what = f"column {name!r} holds {KINDS[column.kind]}, not {KINDS[expected]}"
            remedy = f"{WRITE_WHOLE}, as the other tables do"
            faults.add(table.error(what, remedy, first_of(~column.null)))
            return np.full(table.n_rows, -1)
        index = self._index(column)
        known = f"is not a known {self.noun}"
        if self.labels is None:
            known = "is not one of 0, 1, 2, …" if self.n == ANY else f"is not one of 0 … {self.n - 1}"
        remedy = f"correct it, or add the {self.noun}"
        unknown = (index < 0) & ~column.null
        if unknown.any() and not self.numbered:
            remedy = self._lookalike_remedy(column.text[int(np.argmax(unknown))].as_py()) or remedy
        faults.rows(table, unknown, lambda row: f"{name} {column.show(row)} {known}", remedy)
        return index

    def _lookalike_remedy(self, text: str) -> str | None:
        """Return the remedy for a label that differs from a known one in case or invisible characters."""
        looks = _normalised(text)
        close = next((label for label in self.labels.to_pylist() if _normalised(label) == looks), None)
        return close and f"write it exactly like {close!r}, which looks the same, or add the {self.noun}"

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
