"""Folders whose dynamics are estimated from trajectories: edges may be missing.

Edges, if present, define the possible transitions, and their probabilities are not used. Otherwise problem.json or the
trajectories define the actions.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from messirl.data.errors import InputError
from messirl.data.mdp import NAMES
from messirl.data.problem import Problem
from messirl.data.trajectories import Trajectories
from messirl.dynamics import EstimatedMDP, estimate_mdp
from messirl.io.folder.atomic_replace import current
from messirl.io.folder.build_problem import all_notes, assemble_problem, labels_of, read_tracks
from messirl.io.folder.parse_tables import read_states
from messirl.io.folder.problem_json import SETTINGS, Settings, read_settings
from messirl.io.folder.reader import find_table, load_tables, locate_tables, read_problem
from messirl.io.tables.error_collector import ErrorCollector
from messirl.io.tables.label_index import ANY, Ids
from messirl.io.tables.table import Table


@dataclass(frozen=True, eq=False)
class Estimable:
    """A problem whose dynamics are estimated from trajectories.

    Attributes
    ----------
    problem : Problem
        The problem in the folder; without edges, with the MDP estimated from all its trajectories.
    known : dict
        The known parts of the MDP besides its dynamics, as arguments of `estimate_mdp`.
    """

    problem: Problem
    known: dict[str, Any]

    def estimate(self, trajectories: Trajectories, prior: float = 0.0) -> EstimatedMDP:
        """Estimate the MDP from these trajectories of the problem."""
        return estimate_mdp(trajectories, prior=prior, **self.known)


def read_estimable(folder: str | os.PathLike[str]) -> Estimable:
    """Read the problem in a folder with or without edges; raise InputError at the first fault."""
    place = Path(folder)
    if find_table(current(place), "edges") is None:
        return _without_edges(place)
    problem = read_problem(place)
    mdp = problem.mdp
    if mdp.state_action:
        what = "have features g_*, which depend on the dynamics"
        raise InputError("edges", what, "use features f_* of the states, or known dynamics")
    asked = ("features", "n_states", "n_actions", "discount", "horizon", "terminal", "start", *NAMES)
    return Estimable(problem, {**{name: getattr(mdp, name) for name in asked}, "graph": mdp.transitions})


def _without_edges(folder: Path) -> Estimable:
    if not folder.is_dir():
        raise InputError(str(folder), "is not a folder", "give a folder with states and trajectories")
    faults = ErrorCollector()
    place = locate_tables(faults, folder)
    settings = read_settings(place / SETTINGS)
    tables = load_tables(faults, place, ("states", "trajectories", "trajectory_meta"))
    states = read_states(faults, tables["states"])
    if not states.feature_names:
        raise InputError(tables["states"].where, "has no features", "add a column f_… for each feature")
    actions = _action_ids(tables["trajectories"], settings)
    tracks = read_tracks(faults, tables, states.ids, actions)
    assert states.ids is not None, "faults raise an error"
    assert tracks is not None, "faults raise an error"
    known = {
        "features": states.features,
        "n_actions": None if actions is None or actions.n == ANY else actions.n,
        "discount": settings.discount,
        "horizon": settings.horizon,
        "terminal": states.terminal,
        "start": states.start,
        "state_names": states.names or settings.named("state_names", labels_of(states.ids)),
        "action_names": settings.names.get("action_names", None if actions is None else labels_of(actions)),
        "feature_names": settings.named("feature_names", states.feature_names),
    }
    mdp = estimate_mdp(tracks.trajectories, **known).mdp  # checks all trajectories, held out or not
    problem = assemble_problem(mdp, states, actions, tracks, {}, all_notes(faults, tables))
    return Estimable(replace(problem, y_down=settings.y_down), known)


def _action_ids(table: Table, settings: Settings) -> Ids | None:
    """Return the ids of actions: names in problem.json, else labels in the trajectories, else numbers."""
    if "action" not in table.cells:
        return None
    column, names = table.column("action"), settings.names.get("action_names")
    if column.kind == "text":
        labels = names or sorted(set(column.text.drop_null().to_pylist()) - {""})
        return Ids("action", len(labels), pa.array(labels, pa.string()))
    return Ids("action", len(names) if names else settings.n_actions or ANY)
