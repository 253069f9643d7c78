"""Features of cells: means and counts of columns, distances to points, turning, coordinates, or indicators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.spatial import cKDTree

from messirl._text import did_you_mean
from messirl._types import Floats, Ints
from messirl.data.errors import InputError
from messirl.io.positions.raw_table import RawTable
from messirl.io.positions.row_cleaning import Rows

MOST = 2000  # maximum number of cells with an indicator feature each


@dataclass(frozen=True)
class FeatureRequest:
    """Requested features of cells.

    mean : columns whose mean over the rows in a cell is a feature
    count : `column=value`: the number of rows in a cell with this value
    distance : names and positions (n, 2) of points: the distance to the nearest
    turning : the mean change of direction in a cell, in radians
    coordinates : x and y;  indicator : one feature per cell, which is 1 there
    """

    mean: Sequence[str] = ()
    count: Sequence[str] = ()
    distance: Sequence[tuple[str, Floats]] = ()
    turning: bool = False
    coordinates: bool = False
    indicator: bool = False


def compute_features(
    asked: FeatureRequest,
    raw: RawTable,
    rows: Rows,
    place: Ints,
    at: Floats | None,
    labels: Sequence[str],
    given: Mapping[str, Floats],
    notes: list[str],
) -> dict[str, Floats]:
    """Return every requested feature by its name f_*, one number per cell.

    place : the cell of each row, −1 for none;  at : (S, 2) the centres;  labels : the names of the cells
    given : features f_* of given points
    notes : receives a note if some cells have no row to take a value from
    """
    n, made = len(labels), list[tuple[str, Floats]]()
    for name in asked.mean:
        values = raw.numbers(_column(raw, name, "`mean`"))[rows.row]
        made.append((name, _mean(values, place, n, name, notes)))
    for text in asked.count:
        made.append((text, _count(raw, rows, place, n, text)))
    for name, points in asked.distance:
        far = cKDTree(points).query(_coordinates(at, "`distance`"))[0]
        made.append((f"distance_{name}", np.asarray(far)))
    if asked.turning:
        made.append(("turning", _mean(turning(rows), place, n, "turning", notes)))
    if asked.coordinates:
        made += zip("xy", _coordinates(at, "`coordinates`").T, strict=True)
    if asked.indicator:
        if n > MOST:
            remedy = f"use at most {MOST} cells, or other features"
            raise InputError("`indicator`", f"would make {n} features", remedy)
        made += ((f"at_{label}", row) for label, row in zip(labels, np.eye(n), strict=True))
    made += given.items()
    found: dict[str, Floats] = {}
    for name, values in made:
        called = f"f_{name.removeprefix('f_')}"
        if called in found:
            raise InputError("features", f"{called} is requested twice", "request it once, or rename the column")
        found[called] = values
    return found


def _count(raw: RawTable, rows: Rows, place: Ints, n: int, text: str) -> Floats:
    name, equal, value = text.partition("=")
    if not equal:
        raise InputError("`count`", f"{text!r} has no value", "write COLUMN=VALUE")
    cells = raw.arrow(_column(raw, name, "`count`")).cast(pa.string())
    hit = np.asarray(pc.fill_null(pc.equal(cells, value), False))[rows.row] & (place >= 0)
    if not hit.any():
        raise InputError("`count`", f"no row has {value!r} in column {name!r}", "correct the value")
    return np.bincount(place[hit], minlength=n).astype(np.float64)


def turning(rows: Rows) -> Floats:
    """Return the angle (rad) between the steps to and from each row; NaN at ends and where a step is zero."""
    if rows.xy is None:
        raise InputError("`turning`", "there are no positions", "omit it, or give `x` and `y`")
    way = np.diff(rows.xy, axis=0)
    inner = (rows.track[2:] == rows.track[:-2]) & way[1:].any(axis=1) & way[:-1].any(axis=1)
    angle = np.arctan2(way[:, 1], way[:, 0])
    turn = np.abs((np.diff(angle) + np.pi) % (2 * np.pi) - np.pi)
    return np.concatenate([[np.nan], np.where(inner, turn, np.nan), [np.nan]])[: len(rows.xy)]


def _mean(values: Floats, place: Ints, n: int, name: str, notes: list[str]) -> Floats:
    good = np.isfinite(values) & (place >= 0)
    often = np.bincount(place[good], minlength=n)
    if not often.any():
        raise InputError(f"feature {name}", "no row has a value", "omit this feature")
    mean = np.bincount(place[good], values[good], minlength=n) / np.maximum(often, 1)
    lacking = often == 0
    if lacking.any():
        mean[lacking] = mean[~lacking].mean()
        notes.append(f"{name}: {int(lacking.sum())} of {n} cells have no value and get the mean of the other cells")
    return mean


def _column(raw: RawTable, name: str, option: str) -> str:
    if name not in raw.names:
        raise raw.error(f"there is no column {name!r} ({option})", f"correct the name{did_you_mean(name, raw.names)}")
    return name


def _coordinates(at: Floats | None, option: str) -> Floats:
    if at is None:
        raise InputError(option, "the cells have no coordinates", "omit it, or give coordinates with `points`")
    return at
