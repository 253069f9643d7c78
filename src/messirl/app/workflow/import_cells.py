"""Second half of an import: the cell sequence of every trajectory along allowed transitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from messirl._text import count_noun, did_you_mean
from messirl._types import Floats, Ints
from messirl.app.workflow.import_settings import ImportSettings
from messirl.app.workflow.import_trips import ImportedTracks
from messirl.data.errors import InputError
from messirl.io.positions.cell_sequences import CellSequences, along_neighbours, drop, end_at, make_cell_sequences
from messirl.io.positions.map_matching import match_to_cells
from messirl.io.positions.segmentation import Points, points_per_row, resample_points
from messirl.io.positions.spatial_cells import CellMap

BEYOND = 1e6  # largest ratio of noise to the distance of places, or its inverse, that can be a position error


@dataclass(frozen=True, eq=False)
class ImportedSequences:
    """The trajectories that are kept, and the places that are their states.

    Attributes
    ----------
    made : CellSequences
        The trajectories in states 0 … S − 1.
    places : CellMap
        All possible places.
    used : array (S,)
        The place of each state.
    dropped : dict from str to int
        The number of trajectories left out, by reason.
    rows : int
        The number of rows in the trajectories that are kept.
    """

    made: CellSequences
    places: CellMap
    used: Ints
    dropped: dict[str, int]
    rows: int

    def state_of(self, tracks: ImportedTracks) -> Ints:
        """Return the state of each row, −1 where its place is not a state."""
        number = np.full(self.places.near.shape[0], -1)
        number[self.used] = np.arange(self.used.size)
        return number[_located(tracks, self.places, tracks.rows.xy, tracks.rows.label)]


def find_cell_sequences(tracks: ImportedTracks, places: CellMap, settings: ImportSettings) -> ImportedSequences:
    """Return the cell sequence of every trajectory, with one transition between consecutive cells."""
    points = _points(tracks, settings)
    state = _states(tracks, points, places, settings)
    made = make_cell_sequences(points, state, stay=settings.stays)
    _say_steps(tracks, points, made, settings)
    if settings.adjacent:
        if places.mapping is None:
            remedy = "give `points`, or `moves` seen"
            raise InputError("`moves`", "adjacent: the places have no coordinates", remedy)
        made = along_neighbours(made, places, stay=settings.stays, fill=settings.fill)
        filled = (
            f"{count_noun(made.said['filled'], 'place')} filled in between"
            if settings.fill
            else "each ends a trajectory"
        )
        tracks.said["jumps"] = f"{count_noun(made.said['jumps'], 'step')} farther than to a neighbour, {filled}"
    ends = terminal(places, settings.terminal)
    if ends:
        made = end_at(made, ends)
    n, all_end = tracks.rows.row.size, ends if settings.discount == 1 and not settings.goals else None
    made, dropped, rows = drop(made, n, settings.min_states, goals=settings.goals, ends=all_end)
    if not made.state.size:
        reasons = ", ".join(f"{n} {why}" for why, n in dropped.items() if n)
        remedy = "check the columns, `step`, `pause`, `jump` and the places"
        raise tracks.raw.error(f"no trajectory is left ({reasons})", remedy)
    used = np.unique(made.state)
    if settings.whole_grid or (settings.points is not None and settings.adjacent):
        used = np.arange(places.near.shape[0])
    if used.size < 2:
        raise tracks.raw.error("all rows are at one place", "use smaller places")
    made = replace(made, state=np.searchsorted(used, made.state))
    return ImportedSequences(made, places, used, dropped, rows)


def terminal(places: CellMap, names: Sequence[str]) -> list[int]:
    """Return the numbers of the places with these names."""
    known = places.labels or []
    for name in names:
        if name not in known:
            remedy = f"name one of the places{did_you_mean(name, known)}"
            raise InputError("`terminal`", f"{name!r} is not a named place", remedy)
    return [known.index(name) for name in names]


def _points(tracks: ImportedTracks, settings: ImportSettings) -> Points:
    if settings.step is None:
        return points_per_row(tracks.rows, tracks.trajectory)
    return resample_points(tracks.rows, tracks.trajectory, settings.step)


def _states(tracks: ImportedTracks, points: Points, places: CellMap, settings: ImportSettings) -> Ints:
    if settings.noise is None:
        return _located(tracks, places, points.xy, points.label)
    if points.label is not None or not settings.adjacent:
        raise InputError("`noise`", "needs positions and transitions between neighbours", "omit it")
    if not 1.0 / BEYOND <= settings.noise / places.spacing <= BEYOND:
        what = f"is {settings.noise:g}, but places are {places.spacing:g} apart"
        raise InputError("`noise`", what, "give the error of positions, in the unit of x and y")
    # Without a clock, a track may be at the same place in two rows even if staying is not a transition.
    return match_to_cells(points, places, settings.noise, stay=settings.stays or settings.step is None)


def _located(tracks: ImportedTracks, places: CellMap, xy: Floats | None, label: Ints | None) -> Ints:
    """Return the number of the place of each position or label."""
    if label is None:
        assert places.mapping is not None, "it is known where places are"
        assert xy is not None, "there are positions"
        return places.mapping.transform(xy)
    assert places.labels is not None, "places have names"
    number = {name: i for i, name in enumerate(places.labels)}
    return np.array([number.get(name, -1) for name in tracks.rows.labels], dtype=np.int64)[label]


def _say_steps(tracks: ImportedTracks, points: Points, made: CellSequences, settings: ImportSettings) -> None:
    if settings.step is None:
        said = "one per row" if settings.stays else "one per change of place (`step` makes one per unit of time)"
    else:
        said = f"one per {settings.step:g} {tracks.times.unit}".rstrip()
        between = int((~points.seen).sum())
        if between:
            where = "on a straight line" if points.label is None else "at the last place"
            said += f"; {between:,} of {points.trajectory.size:,} lie between recorded ones, {where}"
        if not settings.stays:
            said += f"; {made.said['stays']:,} without a change of place are left out"
    if settings.noise is not None:
        said += f"; places are the most likely ones, given an error of {settings.noise:g}"
    tracks.said["steps"] = said
