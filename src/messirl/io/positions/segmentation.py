"""Trajectories: tracks split at pauses and jumps, and resampled at equal time steps or kept one point per row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from messirl._types import Flags, Floats, Ints
from messirl.data.errors import InputError
from messirl.io.positions.row_cleaning import Rows

MOST = 20_000_000  # maximum number of points after resampling


@dataclass(frozen=True, eq=False)
class Points:
    """Points of all trajectories, concatenated: M points.

    trajectory : index of the trajectory of each point, increasing
    row : the first row (of Rows) behind each point, −1 if it was interpolated
    xy : positions, or None;  label : indices of cells, or None
    """

    trajectory: Ints
    row: Ints
    xy: Floats | None
    label: Ints | None

    @property
    def seen(self) -> Flags:
        """Mask of the recorded points; the rest is interpolated."""
        return self.row >= 0

    @property
    def goes_on(self) -> Flags:
        """Mask of the points, except the last, whose successor belongs to the same trajectory, (M − 1,)."""
        return np.asarray(self.trajectory[1:] == self.trajectory[:-1])


def split_tracks(
    rows: Rows, pause: float | None, jump: float | None, left: Flags | None = None
) -> tuple[Ints, dict[str, int]]:
    """Return the trajectory of each row, and the number of cuts for each reason.

    pause : split where the time between rows is longer;  jump : split where their distance is larger
    left : (N − 1,) mask of row pairs with rows outside the area between them
    """
    same = ~rows.begins[1:]
    cuts: dict[str, int] = {}
    cut = np.zeros(same.size, dtype=bool)
    if left is not None:
        cut = same & left
        cuts["outside"] = int(cut.sum())
    if pause is not None:
        late = same & ~cut & (np.diff(rows.time) > pause)
        cuts["pauses"] = int(late.sum())
        cut |= late
    if jump is not None:
        if rows.xy is None:
            raise InputError("`jump`", "is a distance, but there are no positions", "omit it, or give `x` and `y`")
        far = same & ~cut & (np.linalg.norm(np.diff(rows.xy, axis=0), axis=1) > jump)
        cuts["jumps"] = int(far.sum())
        cut |= far
    return np.cumsum(np.append(True, ~same | cut)) - 1, cuts


def points_per_row(rows: Rows, trip: Ints) -> Points:
    """Make one point per row."""
    return Points(trip, np.arange(trip.size), rows.xy, rows.label)


def resample_points(rows: Rows, trip: Ints, step: float) -> Points:
    """Resample trajectories at one point per `step` of time, starting at their first row.

    A row belongs to the nearest time step. A step takes the mean position or the most frequent cell of its rows. Steps
    without rows take interpolated positions or the last cell.
    """
    begins = np.append(True, trip[1:] != trip[:-1])
    tick = np.rint((rows.time - rows.time[begins][trip]) / step).astype(np.int64)
    new = begins | np.append(True, tick[1:] != tick[:-1])
    at, last = np.flatnonzero(new), tick[np.append(begins[1:], True)]
    total = int((last + 1).sum())
    if total > MOST:
        raise InputError("`step`", f"{step:g} makes {total:,} steps", "use a longer one, or split tracks with `pause`")
    group = np.cumsum(new) - 1
    start = np.cumsum(np.append(0, last + 1))  # first point of each trajectory
    place = start[trip[at]] + tick[at]
    often = np.bincount(group)
    row = np.full(total, -1, dtype=np.int64)
    row[place] = at
    every = np.arange(total)
    xy = label = None
    if rows.xy is not None:
        mean = [np.bincount(group, column) / often for column in rows.xy.T]
        xy = np.column_stack([np.interp(every, place, column) for column in mean])
    if rows.label is not None:
        label = _most_frequent(group, rows.label)[np.cumsum(row >= 0) - 1]
    return Points(np.repeat(np.arange(last.size), last + 1), row, xy, label)


def _most_frequent(group: Ints, label: Ints) -> Ints:
    """Return the most frequent label of each group; the smallest in a tie."""
    pairs, often = np.unique(np.column_stack([group, label]), axis=0, return_counts=True)
    order = np.lexsort((pairs[:, 1], -often, pairs[:, 0]))
    pairs = pairs[order]
    return np.asarray(pairs[np.append(True, pairs[1:, 0] != pairs[:-1, 0]), 1])
