"""First half of an import: columns, rows, trajectories, and the places that discretise them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from messirl._text import count_noun, join_names
from messirl._types import Flags, Floats, Ints
from messirl.app.workflow.import_settings import ImportSettings
from messirl.io.positions.column_roles import ORDER, Role, check_swapped, find_roles
from messirl.io.positions.point_files import PointTable
from messirl.io.positions.projection import Projection, projection_of
from messirl.io.positions.raw_table import RawTable, read_raw
from messirl.io.positions.row_cleaning import Rows, read_rows, row_order, shared_between_files
from messirl.io.positions.segmentation import split_tracks
from messirl.io.positions.spatial_cells import CellMap, check_outliers, clusters, hexagons, labelled, points, squares
from messirl.io.positions.timestamps import Times, read_times

HOW = "give `grid` SIZE, `hexagons` SIZE, `kmeans` N or `points` FILE"
BEYOND = 3.0  # tolerance, in standard deviations of the noise, for positions outside the area


@dataclass(frozen=True, eq=False)
class ImportedTracks:
    """Usable rows, and the trajectory of each.

    Attributes
    ----------
    raw : RawTable
        The tables as they are.
    roles : dict from str to Role
        The role of each column.
    times : Times
        The time of each row of the tables.
    rows : Rows
        Rows that have a track, a time and a place, in this order.
    trajectory : array (N,)
        The trajectory of each of them.
    said : dict from str to str
        What was detected and dropped, in words.
    area : array (2, 2), optional
        Its lower and upper corner, in the units of the rows.
    degrees : Projection, optional
        The projection of degrees to these units; None if positions are used as recorded.
    """

    raw: RawTable
    roles: dict[str, Role]
    times: Times
    rows: Rows
    trajectory: Ints
    said: dict[str, str]
    area: Floats | None = None
    degrees: Projection | None = None

    def project(self, points: Floats) -> Floats:
        """Return points given by the user, (n, 2), in the units of the rows."""
        return points if self.degrees is None else self.degrees(points)


def read_tracks(source: str | os.PathLike[str], settings: ImportSettings) -> ImportedTracks:
    """Read the rows of a table, or of all tables of a folder, and cut them into trajectories."""
    raw = read_raw(source, separator=settings.separator, decimal=settings.decimal, columns=settings.columns)
    said = {"read": ""}
    roles = _roles(raw, settings)
    for name, role in roles.items():
        said[name] = str(role)
    times = (
        row_order(raw)
        if roles["time"].name == ORDER and ORDER not in raw.names
        else _times(raw, roles["time"].name, settings)
    )
    said["time"] += f", {times.how}"
    rows = read_rows(raw, roles, times, per_file=settings.per_file, same_time=settings.same_time)
    said["read"] = "; ".join([_files(raw), *raw.notes])
    degrees = projection_of(raw, rows, roles, settings.lonlat)
    if degrees is not None:
        rows = replace(rows, xy=degrees(rows.xy))
        said["y"] += f": {degrees}, in which all sizes and distances are"
    if check_swapped(roles):
        said["x"] += ", although its name suggests y"
    if not settings.per_file and len(raw.files) > 1 and (n := shared_between_files(raw, rows)):
        said["id"] += f"; {n} ids are in several files, and count as one each (`per_file` makes one per file)"
    area = None if settings.area is None else _corners(raw, rows, degrees, settings.area)
    inside = _inside(rows, area, settings.noise)
    left = np.diff(np.cumsum(~inside)[inside]) > 0
    rows = rows.take(inside, "outside the area")
    if not rows.row.size:
        raise raw.error("every row lies outside `area`", "correct it, or `x` and `y`")
    said["rows"] = f"{raw.n_rows:,} read, {_less(raw.n_rows - rows.row.size, rows.dropped)}"
    trip, cuts = split_tracks(rows, settings.pause, settings.jump, left if area is not None else None)
    said["tracks"] = f"{np.unique(rows.track).size:,}{_cut(rows, times, cuts, settings)}"
    return ImportedTracks(raw, roles, times, rows, trip, said, area, degrees)


def _corners(raw: RawTable, rows: Rows, degrees: Projection | None, area: Sequence[float]) -> Floats:
    """Return the lower and the upper corner of the area, (2, 2), in the units of the rows."""
    if rows.label is not None:
        raise raw.error("`area` needs positions, but the places are named", "omit it")
    corners = np.reshape(area, (2, 2))
    return corners if degrees is None else degrees(corners)


def _inside(rows: Rows, area: Floats | None, noise: float | None) -> Flags:
    """Return which rows lie in the area, or outside it by no more than the noise allows."""
    if area is None or rows.xy is None:
        return np.ones(rows.row.size, dtype=bool)
    low, high = area[0] - BEYOND * (noise or 0.0), area[1] + BEYOND * (noise or 0.0)
    return np.asarray(((rows.xy >= low) & (rows.xy <= high)).all(axis=1))


def _files(raw: RawTable) -> str:
    return raw.files[0] if len(raw.files) == 1 else f"{len(raw.files)} files, {raw.files[0]} to {raw.files[-1]}"


def _times(raw: RawTable, name: str, settings: ImportSettings) -> Times:
    return read_times(raw, name, fps=settings.fps, form=settings.time_format)


def _less(n: int, why: Mapping[str, int]) -> str:
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in why.items() if count)
    return f"{n:,} dropped" + (f" ({reasons})" if reasons else "")


def _cut(rows: Rows, times: Times, cuts: Mapping[str, int], settings: ImportSettings) -> str:
    """Say how tracks were cut into trajectories, or which options could cut them."""
    if cuts:
        unit = f" {times.unit}".rstrip()
        words = {
            "outside": ("place", "where they leave the area"),
            "pauses": ("pause", f"longer than {settings.pause or 0:g}{unit}"),
            "jumps": ("jump", f"farther than {settings.jump or 0:g}"),
        }
        return ", cut at " + join_names(
            [f"{count_noun(n, words[name][0])} {words[name][1]}" for name, n in cuts.items()]
        )
    gap = np.diff(rows.time)[~rows.begins[1:]]
    if times.unit == "rows" or not gap.size:
        return ", not cut"
    return (
        f", not cut: from row to row {np.median(gap):g} {times.unit}".rstrip()
        + f", at most {gap.max():g} (`pause` cuts at pauses, `jump` at jumps)"
    )


def _roles(raw: RawTable, settings: ImportSettings) -> dict[str, Role]:
    """Return the columns: positions or places, depending on the settings."""
    asked = {role: getattr(settings, role) for role in ("id", "time", "x", "y", "place")}
    first = ("id", "time")
    if any(value is not None for value in (settings.grid, settings.hexagons, settings.kmeans)):
        return find_roles(raw, asked, (*first, "x", "y"), (*first, "x", "y"))
    if settings.place is not None:
        found = find_roles(raw, asked, (*first, "place", "x", "y"), (*first, "place"))
    else:
        found = find_roles(raw, asked, (*first, "x", "y", "place"), first)
    positions = "x" in found and "y" in found
    if "place" in found and positions and settings.place is None and settings.points is not None:
        what = "there are both positions and places"
        raise raw.error(what, f"choose one: `place` {found['place'].name}, or `x` and `y` with `grid`")
    if "place" not in found and not positions:
        find_roles(raw, asked, ("x", "y"), ("x", "y"))
    if "place" not in found and settings.points is None:
        raise raw.error("positions need a discretisation into places", HOW)
    if not positions:
        found = {role: one for role, one in found.items() if role not in "xy"}
    return found


def find_places(tracks: ImportedTracks, given: PointTable | None, settings: ImportSettings) -> CellMap:
    """Return the places that the settings describe."""
    rows = tracks.rows
    if rows.label is not None:
        return _named(tracks, given)
    assert rows.xy is not None, "there are positions or places"
    option = next(name for name in ("grid", "hexagons", "kmeans", "points") if getattr(settings, name) is not None)
    check_outliers(rows.xy, f"`{option}`")
    if settings.grid is not None:
        return squares(rows.xy, settings.grid, settings.neighbours, tracks.area)
    if settings.hexagons is not None:
        return hexagons(rows.xy, settings.hexagons, tracks.area)
    if settings.kmeans is not None:
        return clusters(rows.xy, settings.kmeans, settings.seed)
    assert given is not None, "one of them was asked for"
    return points(rows.xy, tracks.project(given.xy), given.labels, given.where)


def _named(tracks: ImportedTracks, given: PointTable | None) -> CellMap:
    """Return named places; coordinates come from the given points, or are the mean of the positions there."""
    rows, label = tracks.rows, tracks.rows.label
    assert label is not None, "places have names"
    said = f"places named in column {tracks.roles['place'].name!r}"
    if given is not None:
        unknown = set(np.array(rows.labels, dtype=object)[np.unique(label)]) - set(given.labels)
        if unknown:
            code = rows.labels.index(sorted(unknown)[0])
            row = int(rows.row[int(np.argmax(label == code))])
            what = f"place {rows.labels[code]!r} is not among the points of {given.where}"
            raise tracks.raw.error(what, "add it there, or correct the row", row)
        return labelled(given.labels, tracks.project(given.xy), f"{said}, with the points of {given.where}")
    n = len(rows.labels)
    if rows.xy is None:
        return labelled(rows.labels, None, said)
    good = np.isfinite(rows.xy).all(axis=1)
    often = np.bincount(label[good], minlength=n)
    if (often == 0).any():
        return labelled(rows.labels, None, f"{said} (not all of them with positions)")
    at = np.column_stack([np.bincount(label[good], rows.xy[good, j], minlength=n) / often for j in (0, 1)])
    return labelled(rows.labels, at, f"{said}, at the mean of the positions there")
