"""Raw recordings as a problem: from a table of positions or places and plain settings to a record.

    rows → tracks → trips → points → places → courses along moves → Problem

Each arrow is a file of `messirl.io.raw`; what each recognised, dropped or filled in is said in the record.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from messirl import __version__
from messirl._types import Floats, Ints
from messirl._words import did_you_mean
from messirl.io.raw.courses import Courses, along_neighbours, courses, drop, end_at
from messirl.io.raw.decode import decode
from messirl.io.raw.facts import facts_of, names_of
from messirl.io.raw.features import Asked, features_of
from messirl.io.raw.given import Given, read_marks, read_points
from messirl.io.raw.moves import seen_moves, transitions, with_stays
from messirl.io.raw.places import Places
from messirl.io.raw.trips import by_clock, by_row
from messirl.problem.errors import InputError
from messirl.problem.mdp import MDP
from messirl.problem.problem import Problem
from messirl.problem.trajectories import Trajectories
from messirl.workflow.import_settings import ImportSettings, check_settings
from messirl.workflow.import_tracks import ImportedTracks, find_places, read_tracks


@dataclass(frozen=True, eq=False)
class ImportRecord:
    """What raw recordings became.

    Attributes
    ----------
    problem : Problem
        What the folder holds.
    said : dict from str to str
        What was recognised and done, in words, in the order of the work.
    numbers : dict
        The same in numbers: rows, trips, states.
    mapping : dict, optional
        How positions become places: `Grid`, `Hexagons` or `KMeans` as `to_dict` gives it, and the place of each state.
    tracks : list of arrays (T, 2)
        The positions of each track, for the picture; empty where there are none.
    settings : ImportSettings
        What was asked for.
    """

    problem: Problem
    said: dict[str, str]
    numbers: dict[str, Any]
    mapping: dict[str, Any] | None
    tracks: list[Floats]
    settings: ImportSettings

    def summary(self) -> dict[str, Any]:
        """What import.json holds."""
        return {
            "version": __version__,
            **self.numbers,
            "said": self.said,
            "mapping": self.mapping,
            "settings": asdict(self.settings),
        }


def import_recordings(source: str | os.PathLike[str], settings: ImportSettings) -> ImportRecord:
    """Read a table, or all tables of a folder, as a problem; InputError where anything may mean two things."""
    check_settings(settings)
    given = None if settings.points is None else read_points(settings.points)
    tracks = read_tracks(source, settings)
    places = find_places(tracks, given, settings)
    made, dropped = _courses(tracks, places, settings)
    used = np.unique(made.state)
    if settings.whole_grid or (given is not None and _adjacent(tracks, settings)):
        used = np.arange(places.near.shape[0])
    number = np.full(places.near.shape[0], -1)
    number[used] = np.arange(used.size)
    made = replace(made, state=number[made.state])
    if used.size < 2:
        raise tracks.raw.error("all rows are at one place", "give smaller places")
    problem = _problem(tracks, made, places, used, given, settings)
    mapping = None if places.mapping is None else {**places.mapping.to_dict(), "place_of_state": used.tolist()}
    xy, cuts = tracks.rows.xy, np.flatnonzero(np.diff(tracks.trip)) + 1
    numbers = _numbers(tracks, made, dropped, problem)
    return ImportRecord(problem, tracks.said, numbers, mapping, [] if xy is None else np.split(xy, cuts), settings)


def _adjacent(tracks: ImportedTracks, settings: ImportSettings) -> bool:
    """Whether moves lead to neighbours."""
    return settings.moves == "adjacent" or (settings.moves is None and tracks.rows.label is None)


def _stays(settings: ImportSettings) -> bool:
    return settings.step is not None if settings.stay is None else settings.stay


def _courses(tracks: ImportedTracks, places: Places, settings: ImportSettings) -> tuple[Courses, dict[str, int]]:
    """The places of every trip, along moves, and how many trips are dropped, by the reason."""
    rows, stay, said = tracks.rows, _stays(settings), tracks.said
    unit = f" {tracks.times.unit}".rstrip()
    points = by_row(rows, tracks.trip) if settings.step is None else by_clock(rows, tracks.trip, settings.step)
    said["steps"] = "one per change of place" if settings.step is None else f"one per {settings.step:g}{unit}"
    if settings.step is None and stay:
        said["steps"] = "one per row"
    if settings.noise is not None:
        if points.xy is None or rows.label is not None or not _adjacent(tracks, settings):
            raise InputError("--noise", "needs positions, and moves between neighbours", "leave it out")
        state = decode(points, places, settings.noise, stay=stay or settings.step is None)
        said["steps"] += f"; places are the most likely ones for positions with an error of {settings.noise:g}"
    else:
        state = _located(tracks, places, points.xy, points.label)
    made = courses(points, state, stay=stay)
    if settings.step is not None and (n := int((~points.seen).sum())):
        said["steps"] += f"; {n:,} of {points.trip.size:,} lie between recorded ones, {_between(points.label)}"
    if settings.step is not None and not stay:
        said["steps"] += f"; {made.said['stays']:,} without a move are left out"
    if _adjacent(tracks, settings):
        if places.mapping is None:
            raise InputError(
                "--moves", "adjacent: it is not known where the places are", "give --points, or --moves seen"
            )
        made = along_neighbours(made, places, stay=stay, fill=settings.fill)
        said["jumps"] = f"{made.said['jumps']:,} steps lead farther than to a neighbour; " + (
            f"{made.said['filled']:,} places are filled in between" if settings.fill else "each ends a trip"
        )
    if settings.terminal:
        made = end_at(made, _terminal(places, settings.terminal))
    made, dropped = drop(made, settings.min_states, goals=settings.goals)
    if settings.discount == 1 and not settings.goals:
        made, dropped = _until_the_end(made, dropped, _terminal(places, settings.terminal))
    if not made.state.size:
        reasons = ", ".join(f"{n} {why}" for why, n in dropped.items() if n)
        raise tracks.raw.error(
            f"no trip is left ({reasons})", "check the columns, --step, --pause, --jump and the places"
        )
    return made, dropped


def _between(label: Ints | None) -> str:
    return "on a straight line" if label is None else "where the last place stays"


def _located(tracks: ImportedTracks, places: Places, xy: Floats | None, label: Ints | None) -> Ints:
    """The number of the place of each position or label."""
    if label is None:
        assert places.mapping is not None, "there are positions"
        assert xy is not None, "there are positions"
        return places.mapping.transform(xy)
    assert places.labels is not None, "places have names"
    number = {name: i for i, name in enumerate(places.labels)}
    return np.array([number.get(name, -1) for name in tracks.rows.labels], dtype=np.int64)[label]


def _terminal(places: Places, names: Sequence[str]) -> list[int]:
    known = places.labels or []
    for name in names:
        if name not in known:
            what = f"{name!r} is no named place"
            raise InputError("--terminal", what, f"name one of the places{did_you_mean(name, known)}")
    return [known.index(name) for name in names]


def _until_the_end(made: Courses, dropped: dict[str, int], ends: Sequence[int]) -> tuple[Courses, dict[str, int]]:
    """Only trips that end in a terminal place, since discount 1 allows no others."""
    length = np.bincount(made.trip)
    good = np.isin(made.state[np.cumsum(length) - 1], ends)
    kept, _ = drop(made.take(good[made.trip]), 1, goals=False)
    return kept, {**dropped, "cut before a terminal place": int((~good).sum())}


def _problem(
    tracks: ImportedTracks,
    made: Courses,
    places: Places,
    used: Ints,
    given: Given | None,
    settings: ImportSettings,
) -> Problem:
    """The problem of courses whose states are already numbered 0 … S − 1."""
    rows, said, stay = tracks.rows, tracks.said, _stays(settings)
    at = None if places.centres is None else places.centres[used]
    labels = [str(s) for s in range(used.size)] if places.labels is None else [places.labels[s] for s in used]
    if _adjacent(tracks, settings):
        near = places.near[used][:, used]
        moves, stuck = with_stays(near) if stay else near, 0
        lattice = at if places.lattice else None
        said["moves"] = f"{moves.nnz:,}, to neighbours" + (" and staying" if stay else "")
    else:
        moves, stuck = seen_moves(made, used.size)
        lattice = None
        said["moves"] = f"{moves.nnz:,}, those that were seen"
        if stuck:
            said["moves"] += f"; {stuck} places that nobody leaves have a move to themselves"
    said["states"] = f"{used.size:,} {places.said}"
    table, names = transitions(moves, lattice)
    notes: list[str] = []
    number = np.full(places.near.shape[0], -1)
    number[used] = np.arange(used.size)
    place = number[_located(tracks, places, rows.xy, rows.label)]
    marks = dict(read_marks(text) for text in settings.distance)
    asked = Asked(settings.mean, settings.count, marks, settings.turning, settings.coordinates, settings.indicator)
    features = features_of(asked, tracks.raw, rows, place, at, labels, notes)
    if given is not None:
        features |= {name.removeprefix("f_"): values[used] for name, values in given.features.items()}
    if not features:
        raise InputError(settings.points or "features", "there is no feature", "add columns f_… to the points")
    said["features"] = "; ".join([", ".join(f"f_{name}" for name in list(features)[:12]), *notes])
    terminal = None
    if settings.terminal:
        terminal = np.isin(used, _terminal(places, settings.terminal))
    assert settings.discount is not None, "it was checked"
    mdp = MDP(
        table,
        np.column_stack(list(features.values())),
        discount=settings.discount,
        terminal=terminal,
        state_names=None if places.labels is None else labels,
        action_names=names,
        feature_names=[f"f_{name}" for name in features],
    )
    offsets = np.append(np.flatnonzero(np.append(True, ~made.goes_on)), made.state.size)
    goals = made.state[offsets[1:] - 1] if settings.goals else None
    trajectories = Trajectories(made.state, offsets, None, goals)
    first = np.maximum.accumulate(made.row)[offsets[:-1]]
    return _with_facts(tracks, Problem(mdp, trajectories, xy=at), made, first, labels if places.labels else None, names)


def _with_facts(
    tracks: ImportedTracks,
    problem: Problem,
    made: Courses,
    first: Ints,
    labels: list[str] | None,
    actions: Sequence[str] | None,
) -> Problem:
    """The problem with what is known of each trip."""
    roles = {role.name for name, role in tracks.roles.items() if name != "id"}
    meta, kept = facts_of(tracks.raw, tracks.rows, tracks.trip, first, tracks.times, roles, tracks.roles["id"].name)
    meta.setdefault("filled", 1.0 - np.bincount(made.trip, made.row >= 0) / problem.trajectories.lengths)
    tracks.said["trajectory_meta"] = ", ".join(meta)
    if kept["varying"]:
        tracks.said["trajectory_meta"] += f"; not kept, since they change within trips: {', '.join(kept['varying'])}"
    return replace(
        problem,
        meta=meta,
        trajectory_ids=names_of(tracks.rows, first),
        state_ids=None if labels is None else np.array(labels, dtype=object),
        action_ids=None if actions is None else np.array(actions, dtype=object),
    )


def _numbers(tracks: ImportedTracks, made: Courses, dropped: Mapping[str, int], problem: Problem) -> dict[str, Any]:
    """Rows, trips and states in numbers; the last word of what is said."""
    n_trips, n_kept = int(made.trip[-1]) + 1 + sum(dropped.values()), len(problem.trajectories)
    seen = int((made.row >= 0).sum())
    reasons = ", ".join(f"{n:,} {why}" for why, n in dropped.items() if n)
    tracks.said["trips"] = f"{n_trips:,}, of which {n_kept:,} are kept" + (f" (dropped: {reasons})" if reasons else "")
    inside = _rows_inside(tracks, made)
    share = inside / tracks.raw.n_rows
    tracks.said["kept"] = (
        f"{share:.1%} of the rows are in these trips; {seen / made.row.size:.1%} of their states were recorded"
    )
    return {
        "files": tracks.raw.files,
        "rows": {
            "read": tracks.raw.n_rows,
            "used": tracks.rows.row.size,
            "dropped": tracks.rows.dropped,
            "kept": inside,
        },
        "trips": {"made": n_trips, "kept": n_kept, "dropped": dict(dropped)},
        "states": {"places": problem.mdp.n_states, "visits": made.state.size, "recorded": seen},
        "share_of_rows_kept": share,
    }


def _rows_inside(tracks: ImportedTracks, made: Courses) -> int:
    """How many rows lie between the first and the last recorded state of the trips that are kept."""
    row = np.maximum.accumulate(made.row)
    offsets = np.append(np.flatnonzero(np.append(True, ~made.goes_on)), made.state.size)
    first, last = row[offsets[:-1]], row[offsets[1:] - 1]
    after = np.append(np.flatnonzero(np.diff(tracks.trip)) + 1, tracks.trip.size)
    end = after[np.searchsorted(after, last, side="right")]  # of the trip of its last recorded state
    end = np.minimum(end, np.append(first[1:], tracks.trip.size))
    return int((end - first).sum())
