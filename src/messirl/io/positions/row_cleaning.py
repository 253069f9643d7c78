"""Usable rows, sorted by track and time; rows with missing, repeated or contradictory values are counted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from messirl._text import join_names
from messirl._types import Array, Flags, Floats, Ints
from messirl.io.positions.column_roles import FILE, ORDER, Role
from messirl.io.positions.raw_table import RawTable
from messirl.io.positions.timestamps import Times

SAME_TIME = ("refuse", "first", "mean", "all")


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows in the order of tracks and times.

    row : index of each row in the source
    track : index of its track, in order of first occurrence;  tracks : the ids of the tracks
    time : in the unit of the times
    xy : positions (N, 2), or None if a column of cells is given
    label : index of its cell, or None;  labels : the names of the cells
    dropped : the number of dropped rows for each reason
    """

    row: Ints
    track: Ints
    tracks: Array
    time: Floats
    xy: Floats | None
    label: Ints | None
    labels: list[str]
    dropped: dict[str, int] = field(default_factory=dict)

    def take(self, kept: Flags, reason: str) -> Rows:
        """Return a subset of the rows and count the rest as dropped."""
        lost = int((~kept).sum())
        if not lost:
            return self
        return replace(self.picked(kept), dropped={**self.dropped, reason: self.dropped.get(reason, 0) + lost})

    def picked(self, which: Flags | Ints) -> Rows:
        """Return these rows, in this order."""
        return replace(
            self,
            row=self.row[which],
            track=self.track[which],
            time=self.time[which],
            xy=None if self.xy is None else self.xy[which],
            label=None if self.label is None else self.label[which],
        )

    @property
    def begins(self) -> Flags:
        """Mask of the first row of each track."""
        return np.append(True, self.track[1:] != self.track[:-1])[: self.track.size]


def read_rows(raw: RawTable, roles: dict[str, Role], times: Times, *, per_file: bool, same_time: str) -> Rows:
    """Read the rows that have a track, a time, and a cell or position.

    per_file : the same id in another file is another track
    same_time : how to resolve two positions of a track at the same time
    """
    track, tracks = _tracks(raw, roles["id"].name, per_file)
    xy, label, labels = None, None, list[str]()
    if "place" in roles:
        coded = pc.dictionary_encode(raw.arrow(roles["place"].name).cast(pa.string()))
        labels = coded.dictionary.to_pylist()
        label = np.asarray(pc.fill_null(coded.indices, -1), dtype=np.int64)
    if "x" in roles:
        xy = np.column_stack([raw.numbers(roles[axis].name) for axis in "xy"])
    rows = Rows(np.arange(raw.n_rows), track, tracks, times.at, xy, label, labels)
    rows = rows.take(rows.track >= 0, "without an id")
    rows = rows.take(np.isfinite(rows.time), "without a time")
    if rows.label is not None:
        rows = rows.take(rows.label >= 0, "without a place")
    elif rows.xy is not None:
        rows = rows.take(np.asarray(np.isfinite(rows.xy).all(axis=1)), "without a position")
    if not rows.row.size:
        lost = join_names([f"{n} {reason}" for reason, n in rows.dropped.items()])
        raise raw.error(
            f"no row has an id, a time and a position ({lost}; NA, nan, none, null, - and ? count as missing)",
            "choose the columns with `id`, `time`, `place, --x`, `y`",
        )
    _, first, code = np.unique(rows.track, return_index=True, return_inverse=True)
    order = np.lexsort((rows.row, rows.time, first[code]))
    return _resolve_same_time(raw, rows.picked(order), same_time)


def _tracks(raw: RawTable, name: str, per_file: bool) -> tuple[Ints, Array]:
    """Return the index of the track of each row, −1 where missing, and the ids of the tracks."""
    file, stems = raw.file_of, [name.rpartition(".")[0] for name in raw.files]
    if name == FILE and name not in raw.names:
        return file, np.array(stems, dtype=object)
    coded = pc.dictionary_encode(raw.arrow(name))
    called = coded.dictionary.to_pylist()
    if any(isinstance(one, float) and one.is_integer() for one in called):
        called = [int(one) if float(one).is_integer() else one for one in called]
    code = np.asarray(pc.fill_null(coded.indices, -1), dtype=np.int64)
    if not per_file or len(stems) == 1:
        return code, np.array([str(one) for one in called], dtype=object)
    pair, code_of = np.unique(np.where(code < 0, -1, file * len(called) + code), return_inverse=True)
    names = [f"{stems[key // len(called)]}-{called[key % len(called)]}" for key in pair.tolist() if key >= 0]
    return code_of - int(pair[0] < 0), np.array(names, dtype=object)


def shared_between_files(raw: RawTable, rows: Rows) -> int:
    """Count the tracks with rows in more than one file."""
    pairs = np.unique(np.column_stack([rows.track, raw.file_of[rows.row]]), axis=0)
    return int((np.bincount(pairs[:, 0]) > 1).sum())


def _resolve_same_time(raw: RawTable, rows: Rows, same_time: str) -> Rows:
    """Reduce the rows to one per track and time."""
    same = ~rows.begins
    same[1:] &= rows.time[1:] == rows.time[:-1]
    if not same.any():
        return rows
    value = rows.label[:, None] if rows.label is not None else rows.xy
    assert value is not None, "cells or positions are needed"
    again = same.copy()
    again[1:] &= (value[1:] == value[:-1]).all(axis=1)
    rows = rows.take(~again, "repeated")
    same = ~rows.begins
    same[1:] &= rows.time[1:] == rows.time[:-1]
    if not same.any() or same_time == "all":
        return rows
    if same_time == "refuse":
        at = int(np.argmax(same))
        what = f"track {rows.tracks[rows.track[at]]!r} is in two places at the same time"
        remedy = "give each individual its own id (`per_file` if ids restart in every file), or use `same_time` first"
        raise raw.error(what, remedy, int(rows.row[at]))
    if same_time == "mean" and rows.xy is not None:
        group = np.cumsum(~same) - 1
        often = np.bincount(group)
        mean = np.column_stack([np.bincount(group, rows.xy[:, j]) / often for j in (0, 1)])
        rows = replace(rows, xy=mean[group])
    return rows.take(~same, "at the same time as another")


def row_order(raw: RawTable) -> Times:
    """Return row numbers as times, for rows in temporal order."""
    return Times(np.arange(raw.n_rows, dtype=np.float64), "rows", f"`time` {ORDER}: rows in their order")
