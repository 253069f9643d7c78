"""Rows that can be used, sorted by track and time; empty cells, repetitions and contradictions are counted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from messirl._types import Array, Flags, Floats, Ints
from messirl.io.positions.column_roles import FILE, ORDER, Role
from messirl.io.positions.raw_table import Raw
from messirl.io.positions.timestamps import Times

SAME_TIME = ("refuse", "first", "mean", "all")


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows in the order of tracks and times.

    row : where each stands in the source
    track : number of its track, counted in the order in which they first occur;  tracks : what they are called
    time : in the unit of the times
    xy : positions (N, 2), or None where places are given
    label : number of its place, or None;  labels : what places are called
    dropped : how many rows of the source are left out, by the reason
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
        """Some of the rows; the others are counted as dropped."""
        lost = int((~kept).sum())
        if not lost:
            return self
        return replace(self.picked(kept), dropped={**self.dropped, reason: self.dropped.get(reason, 0) + lost})

    def picked(self, which: Flags | Ints) -> Rows:
        """These rows, in this order."""
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
        """Which rows are the first of a track."""
        return np.append(True, self.track[1:] != self.track[:-1])[: self.track.size]


def read_rows(raw: Raw, roles: dict[str, Role], times: Times, *, per_file: bool, same_time: str) -> Rows:
    """The rows that have a track, a time and a place.

    per_file : the same id in another file is another track
    same_time : what to do where a track is at two places at the same time
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
        raise raw.error(
            "no row has an id, a time and a place", "say which columns they are with --id, --time, --x, --y"
        )
    _, first, code = np.unique(rows.track, return_index=True, return_inverse=True)
    order = np.lexsort((rows.row, rows.time, first[code]))
    return _once(raw, rows.picked(order), same_time)


def _tracks(raw: Raw, name: str, per_file: bool) -> tuple[Ints, Array]:
    """The number of the track of each row, −1 where none is given, and what they are called."""
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


def shared_between_files(raw: Raw, rows: Rows) -> int:
    """How many tracks have rows in more than one file."""
    pairs = np.unique(np.column_stack([rows.track, raw.file_of[rows.row]]), axis=0)
    return int((np.bincount(pairs[:, 0]) > 1).sum())


def _once(raw: Raw, rows: Rows, same_time: str) -> Rows:
    """One row per track and time."""
    same = ~rows.begins
    same[1:] &= rows.time[1:] == rows.time[:-1]
    if not same.any():
        return rows
    value = rows.label[:, None] if rows.label is not None else rows.xy
    assert value is not None, "there are places or positions"
    again = same.copy()
    again[1:] &= (value[1:] == value[:-1]).all(axis=1)
    rows = rows.take(~again, "repeated")
    same = ~rows.begins
    same[1:] &= rows.time[1:] == rows.time[:-1]
    if not same.any() or same_time == "all":
        return rows
    if same_time == "refuse":
        at = int(np.argmax(same))
        what = f"track {rows.tracks[rows.track[at]]!r} is at two places at the same time as in another row"
        remedy = "give each individual an id of its own (--per-file if files count anew), or say --same-time first"
        raise raw.error(what, remedy, int(rows.row[at]))
    if same_time == "mean" and rows.xy is not None:
        group = np.cumsum(~same) - 1
        often = np.bincount(group)
        mean = np.column_stack([np.bincount(group, rows.xy[:, j]) / often for j in (0, 1)])
        rows = replace(rows, xy=mean[group])
    return rows.take(~same, "at the same time as another")


def row_order(raw: Raw) -> Times:
    """Times where rows are in order: their numbers."""
    return Times(np.arange(raw.n_rows, dtype=np.float64), "rows", f"--time {ORDER}: rows in their order")
