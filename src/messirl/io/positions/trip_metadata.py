"""Metadata of trajectories: track, begin, and the columns that are constant within each trajectory."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from messirl._types import Array, Flags, Ints
from messirl.io.positions.raw_table import RawTable
from messirl.io.positions.row_cleaning import Rows
from messirl.io.positions.timestamps import Times
from messirl.io.tables.table import column_of_arrow, column_of_text

RESERVED = {"trajectory_id": "track", "goal": "goal_given"}  # names with another meaning in trajectory_meta


def trajectory_ids(rows: Rows, first: Ints) -> Array:
    """Return the ids of trajectories: their track, numbered where a track has several.

    first : the first row (of Rows) of each trajectory
    """
    track = rows.track[first]
    nth = _number_in_track(track)
    several = np.bincount(track, minlength=len(rows.tracks))[track] > 1
    for sign in ("-", "/", "#", " trip "):
        names = [
            f"{rows.tracks[t]}{sign}{k}" if many else str(rows.tracks[t])
            for t, k, many in zip(track.tolist(), nth.tolist(), several.tolist(), strict=True)
        ]
        if len(set(names)) == len(names):
            break
    return _as_integers(np.array(names, dtype=object))


def _number_in_track(track: Ints) -> Ints:
    """Count the trajectories of each track 1, 2, …; those of a track are contiguous."""
    begins = np.flatnonzero(np.append(True, track[1:] != track[:-1]))
    return np.arange(track.size) - np.repeat(begins, np.diff(np.append(begins, track.size))) + 1


def metadata_columns(
    raw: RawTable, rows: Rows, trip: Ints, first: Ints, times: Times, roles: Collection[str], called: str
) -> tuple[dict[str, Array], list[str]]:
    """Return the columns of trajectory_meta, and the source columns omitted because they vary within trajectories.

    trip : the trajectory of each row before any further cut
    roles : columns with another use;  called : the column of ids
    """
    labels = rows.tracks[rows.track[first]]
    meta: dict[str, Array] = {RESERVED.get(called, called): _as_integers(labels)}
    left: list[str] = []
    begins = np.append(True, trip[1:] != trip[:-1])
    for name in raw.names:
        if name in roles or name == called:
            continue
        cells = raw.arrow(name)
        if pa.types.is_nested(cells.type) or not _constant(cells, rows, trip, begins):
            left.append(name)
            continue
        some = cells.take(rows.row[first])
        typed = raw.tables[0].typed
        column = column_of_arrow(some, raw.files[0], name) if typed else column_of_text(pc.fill_null(some, ""))
        meta[RESERVED.get(name, name)] = column.array()
    meta.setdefault("trip", _number_in_track(rows.track[first]))
    meta.setdefault("begins", np.array([times.show(time) for time in rows.time[first].tolist()]))
    if len(raw.files) > 1:
        meta.setdefault("file", np.array(raw.files, dtype=object)[raw.file_of[rows.row[first]]])
    return meta, left


def _constant(cells: object, rows: Rows, trip: Ints, begins: Flags) -> bool:
    code = np.asarray(pc.fill_null(pc.dictionary_encode(cells).indices, -1))[rows.row]
    return bool((code == code[begins][trip]).all())


def _as_integers(labels: Array) -> Array:
    """Convert labels to integers if all of them are canonical integers."""
    plain = all(
        label.isascii() and label.isdigit() and len(label) < 18 and str(int(label)) == label for label in labels
    )
    return labels.astype(np.int64) if plain else labels
