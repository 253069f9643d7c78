"""Import of raw recordings: from a table of positions or places and plain settings to a problem and its record.

    rows → tracks → trajectories → points → places → cell sequences → Problem

Each arrow is a file of `messirl.io.positions`; the record reports what each of them detected, dropped or filled in.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from messirl import __version__
from messirl._text import count_noun
from messirl._types import Array, Floats
from messirl.app.workflow.import_cells import ImportedSequences, find_cell_sequences, terminal
from messirl.app.workflow.import_settings import ImportSettings, check_settings
from messirl.app.workflow.import_trips import ImportedTracks, find_places, read_tracks
from messirl.data.errors import InputError
from messirl.data.mdp import MDP
from messirl.data.problem import Problem
from messirl.data.trajectories import Trajectories
from messirl.io.positions.adjacency import add_self_transitions, observed_transitions, transitions
from messirl.io.positions.cell_features import FeatureRequest, compute_features
from messirl.io.positions.point_files import PointTable, read_landmarks, read_points
from messirl.io.positions.trip_metadata import metadata_columns, trajectory_ids

NAMES_SHOWN = 12


@dataclass(frozen=True, eq=False)
class ImportRecord:
    """The result of an import.

    Attributes
    ----------
    problem : Problem
        The content of the problem folder.
    said : dict from str to str
        What was detected and done, in words, in the order of the work.
    numbers : dict
        The numbers of rows, trajectories and states.
    mapping : dict, optional
        The discretisation of positions (`to_dict` of `Grid`, `Hexagons` or `KMeans`), and the place of each state.
    tracks : list of arrays (T, 2)
        The positions of each trajectory, for the picture; empty without positions.
    settings : ImportSettings
        The settings of the import.
    """

    problem: Problem
    said: dict[str, str]
    numbers: dict[str, Any]
    mapping: dict[str, Any] | None
    tracks: list[Floats]
    settings: ImportSettings

    def summary(self) -> dict[str, Any]:
        """Return the content of import.json."""
        return {
            "version": __version__,
            **self.numbers,
            "said": self.said,
            "mapping": self.mapping,
            "settings": asdict(self.settings),
        }


def import_recordings(source: str | os.PathLike[str], settings: ImportSettings) -> ImportRecord:
    """Read a table, or all tables of a folder, as a problem; raise InputError if anything is ambiguous."""
    if not isinstance(source, str | os.PathLike):
        what = f"is a {type(source).__name__}, not the path of a table or of a folder"
        raise InputError("source", what, "write it to a file first (DataFrame.to_csv, to_parquet)")
    check_settings(settings)
    given = None if settings.points is None else read_points(settings.points)
    tracks = read_tracks(source, settings)
    known = settings if "place" not in tracks.roles else replace(settings, place=tracks.roles["place"].name)
    places = find_places(tracks, given, known)
    found = find_cell_sequences(tracks, places, known)
    problem = _problem(tracks, found, given, known)
    mapping = None if places.mapping is None else {**places.mapping.to_dict(), "place_of_state": found.used.tolist()}
    if mapping is not None and tracks.degrees is not None:
        mapping["degrees"] = {name: value for name, value in asdict(tracks.degrees).items() if value is not False}
    xy, cuts = tracks.rows.xy, np.flatnonzero(np.diff(tracks.trajectory)) + 1
    numbers = _numbers(tracks, found)
    return ImportRecord(problem, tracks.said, numbers, mapping, [] if xy is None else np.split(xy, cuts), settings)


def _problem(
    tracks: ImportedTracks, found: ImportedSequences, given: PointTable | None, settings: ImportSettings
) -> Problem:
    places, used, made = found.places, found.used, found.made
    at = None if places.centres is None else places.centres[used]
    labels = None if places.labels is None else [places.labels[s] for s in used]
    tracks.said["states"] = f"{used.size:,} {places.said}"
    moves = _moves(tracks, found, settings)
    table, actions = transitions(moves, at if places.lattice and settings.adjacent else None)
    features = _features(tracks, found, at, labels, given, settings)
    assert settings.discount is not None, "it was checked"
    cut = "; a trajectory that is cut represents an endless one" if settings.discount < 1 and not settings.goals else ""
    tracks.said["discount"] = f"{settings.discount:g}{'; trajectories end at goals' if settings.goals else cut}"
    mdp = MDP(
        table,
        np.column_stack(list(features.values())),
        discount=settings.discount,
        terminal=np.isin(used, terminal(places, settings.terminal)) if settings.terminal else None,
        state_names=labels,
        action_names=actions,
        feature_names=list(features),
    )
    goals = made.state[made.offsets[1:] - 1] if settings.goals else None
    return Problem(
        mdp,
        Trajectories(made.state, made.offsets, None, goals),
        _facts(tracks, found, settings),
        trajectory_ids(tracks.rows, made.first_rows),
        None if labels is None else np.array(labels, dtype=object),
        None if actions is None else np.array(actions, dtype=object),
        at,
        y_down=settings.y_down,
    )


def _moves(tracks: ImportedTracks, found: ImportedSequences, settings: ImportSettings) -> Any:
    """Return the allowed transitions between states, (S, S)."""
    if settings.adjacent:
        near = found.places.near[found.used][:, found.used]
        moves = add_self_transitions(near) if settings.stays else near
        tracks.said["moves"] = f"{moves.nnz:,}, to neighbours{' and staying' if settings.stays else ''}"
        return moves
    moves, stuck = observed_transitions(found.made, found.used.size)
    tracks.said["moves"] = f"{moves.nnz:,}, those that were seen"
    if stuck:
        tracks.said["moves"] += f", and one to itself of each of {count_noun(stuck, 'place')} that no trajectory leaves"
    return moves


def _features(
    tracks: ImportedTracks,
    found: ImportedSequences,
    at: Floats | None,
    labels: list[str] | None,
    given: PointTable | None,
    settings: ImportSettings,
) -> dict[str, Floats]:
    marks = [(name, tracks.project(points)) for name, points in map(read_landmarks, settings.distance)]
    asked = FeatureRequest(
        settings.mean, settings.count, marks, settings.turning, settings.coordinates, settings.indicator
    )
    notes: list[str] = []
    called = [str(s) for s in range(found.used.size)] if labels is None else labels
    own = {} if given is None else {name: values[found.used] for name, values in given.features.items()}
    made = compute_features(asked, tracks.raw, tracks.rows, found.state_of(tracks), at, called, own, notes)
    if not made:
        remedy = "add columns f_… to its points, or choose other features"
        raise InputError(str(settings.points), "there is no feature", remedy)
    more = f" and {len(made) - NAMES_SHOWN} more" if len(made) > NAMES_SHOWN else ""
    tracks.said["features"] = "; ".join([", ".join(list(made)[:NAMES_SHOWN]) + more, *notes])
    return made


def _facts(tracks: ImportedTracks, found: ImportedSequences, settings: ImportSettings) -> dict[str, Array]:
    """Return the columns of trajectory_meta."""
    others = [role.name for name, role in tracks.roles.items() if name != "id"]
    roles = {part for name in others for part in (name, *name.split("+"))}
    first, called = found.made.first_rows, tracks.roles["id"].name
    meta, left = metadata_columns(tracks.raw, tracks.rows, tracks.trajectory, first, tracks.times, roles, called)
    meta.setdefault("filled", np.bincount(found.made.trajectory, found.made.row < 0) / np.diff(found.made.offsets))
    of_features = {*settings.mean, *(text.partition("=")[0] for text in settings.count)}
    left = [name for name in left if name not in of_features]
    said = f"; left out, since they change within trajectories: {', '.join(left)}" if left else ""
    tracks.said["trajectory_meta"] = ", ".join(meta) + said
    return meta


def _numbers(tracks: ImportedTracks, found: ImportedSequences) -> dict[str, Any]:
    """Return the numbers of rows, trajectories and states, and add them to the report."""
    made, raw, rows = found.made, tracks.raw, tracks.rows
    kept = made.offsets.size - 1
    n_trips = kept + sum(found.dropped.values())
    seen = int((made.row >= 0).sum())
    reasons = ", ".join(f"{n:,} {why}" for why, n in found.dropped.items() if n)
    share = found.rows / raw.n_rows
    tracks.said["trips"] = f"{n_trips:,}, of which {kept:,} are kept" + (f" (dropped: {reasons})" if reasons else "")
    tracks.said["kept"] = f"{share:.1%} of the rows; {seen / made.row.size:.1%} of the states were recorded"
    return {
        "files": raw.files,
        "rows": {"read": raw.n_rows, "used": rows.row.size, "dropped": rows.dropped, "kept": found.rows},
        "trips": {"made": n_trips, "kept": kept, "dropped": found.dropped},
        "states": {"places": found.used.size, "visits": made.state.size, "recorded": seen},
        "share_of_rows_kept": share,
    }
