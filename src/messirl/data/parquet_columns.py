"""Conversion of table columns to arrays: trajectory ids, whole numbers, states and actions by number or label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from messirl._text import did_you_mean
from messirl._types import Array, Flags, Ints
from messirl.data.errors import InputError
from messirl.data.parquet import Batch

WRITE_WHOLE = "write whole numbers (pandas: astype('Int64')), or labels of text"


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of states or actions in a column: those given, else the MDP's names if it holds text, else numbers."""

    noun: str
    given: list[Any] | None
    names: list[str] | None

    @classmethod
    def of(cls, noun: str, given: Sequence[Any] | None, names: Sequence[str] | None) -> Labels:
        """Return the labels of a set from those given and the names of its MDP."""
        return cls(noun, None if given is None else list(given), None if names is None else list(names))

    def show(self, index: int) -> str:
        """Return a state or an action as error messages name it."""
        return str(index) if self.given is None else repr(self.given[index])

    def known(self, batch: Batch, *, text: bool) -> list[Any] | None:
        """Return the labels by which a column of text, or of whole numbers, is read; None: by number."""
        labels = self.given if self.given is not None else self.names if text else None
        if text and labels is None:
            what = f"column {self.noun!r} holds text, but the MDP has no {self.noun}_names"
            raise batch.error(what, f"give the MDP names, or number the {self.noun}s 0, 1, 2, …", 0)
        if labels is not None and text != isinstance(labels[0], str):
            held, wanted = ("text", "whole numbers") if text else ("whole numbers", "text")
            what = f"column {self.noun!r} holds {held}, but the labels are {wanted}"
            raise batch.error(what, "use the same type as in the problem's own tables", 0)
        return labels


def begins_of(batch: Batch, before: Any) -> tuple[Flags, Any]:
    """Return a mask of the rows that begin a trajectory, and the last id; `before` is the id in the row before."""
    import pyarrow.compute as pc

    ids = _plain(batch, "trajectory_id")
    if len(ids) == 0:
        return np.zeros(0, dtype=bool), before
    begins = np.ones(len(ids), dtype=bool)
    begins[0] = before is None or ids[0].as_py() != before
    begins[1:] = pc.not_equal(ids.slice(1), ids.slice(0, len(ids) - 1)).to_numpy(zero_copy_only=False)
    return begins, ids[len(ids) - 1].as_py()


def names_of(batch: Batch, begins: Flags) -> Array:
    """Return the ids of the trajectories that begin in these rows: whole numbers, or text."""
    import pyarrow as pa

    some = _plain(batch, "trajectory_id").filter(pa.array(begins))
    if pa.types.is_integer(some.type):
        return np.asarray(some).astype(np.int64)
    names = np.empty(len(some), dtype=object)
    names[:] = some.to_pylist()
    return names


def whole_cells(batch: Batch, name: str) -> Ints:
    """Return a column of whole numbers, (N,), none of them empty."""
    import pyarrow as pa

    cells = _plain(batch, name)
    if not pa.types.is_integer(cells.type):
        raise batch.error(f"column {name!r} holds {cells.type}", "write whole numbers", 0)
    return np.asarray(cells, dtype=np.int64)


def known_cells(batch: Batch, name: str, labels: Labels, empty: int | None = None) -> Ints:
    """Return a column of states or actions as numbers, (N,); empty cells become `empty` or, if it is None, raise."""
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = _plain(batch, name, empty=empty is not None)
    text = pa.types.is_string(cells.type)
    if pa.types.is_null(cells.type):
        return np.full(len(cells), empty, dtype=np.int64)
    known = labels.known(batch, text=text) if len(cells) else None
    found = cells
    if known is not None:
        found = pc.index_in(cells, value_set=pa.array(known).cast(cells.type))
        unknown = np.asarray(pc.and_(found.is_null(), cells.is_valid()))
        if unknown.any():
            at = int(np.argmax(unknown))
            cell = cells[at].as_py()
            close = did_you_mean(cell, map(str, known)) if text else ""
            raise batch.error(f"{name} {cell!r:.60} is not a known {name}", f"correct it{close}", at)
    filled = found if empty is None else pc.fill_null(found.cast(pa.int64()), empty)
    return np.zeros(0, dtype=np.int64) if text and known is None else np.asarray(filled, dtype=np.int64)


def _plain(batch: Batch, name: str, *, empty: bool = False) -> Any:
    """Return a column as whole numbers or text; raise an InputError for other types, or unless `empty` for nulls."""
    import pyarrow as pa

    cells, test = batch.columns[name], pa.types
    if test.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if cells.null_count and not empty:
        at = int(np.argmax(np.asarray(cells.is_null())))
        raise batch.error(f"{name} is empty", "fill it in, or drop the row", at)
    if test.is_large_string(cells.type) or str(cells.type) == "string_view":
        cells = cells.cast(pa.string())
    if not (test.is_integer(cells.type) or test.is_string(cells.type) or test.is_null(cells.type)):
        raise batch.error(f"column {name!r} holds {cells.type}", WRITE_WHOLE, 0)
    if test.is_uint64(cells.type):
        try:
            return cells.cast(pa.int64())
        except pa.ArrowInvalid:
            raise InputError(batch.file, f"column {name!r} holds numbers beyond 64 bits", WRITE_WHOLE) from None
    return cells
