"""The view of saved fits: map, features and trajectories of a folder that `messirl fit` wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from messirl.app.lab import state_layout
from messirl.app.lab.catalog import check_scene_size
from messirl.app.lab.folders import PROBLEM, FolderEntry, open_folder
from messirl.app.lab.json_views import map_numbers, rounded
from messirl.app.lab.requests import RequestError
from messirl.data.mdp import MDP
from messirl.data.problem import Problem
from messirl.data.trajectories import Trajectories
from messirl.io.folder.labels import Labels, read_labels
from messirl.loading import load

TRACKS = 40  # maximum number of shown trajectories
LENGTH = 60  # states of a sampled trajectory that nothing else ends


def saved_fit(folder: Path, known: dict[str, FolderEntry]) -> dict[str, Any]:
    """Return the contents of the view of a saved fit. known : folders that may be opened, as that of its problem."""
    try:
        model = load(folder / "model.npz")
    except ValueError as error:
        raise RequestError(str(error)) from error
    mdp = model.mdp_
    if not hasattr(model, "theta_") or not hasattr(model, "visitation_"):  # such as cloning, which learns no reward
        raise RequestError(
            f"a model of {type(model).__name__} has no weights or no visits to show: open one of MESSI or MaxEntIRL"
        )
    check_scene_size(mdp, 0)
    summary = _summary(folder / "fit.json")
    problem = _problem(str(summary.get("folder", "")), mdp, known)
    own = read_labels(folder / "model.npz", mdp) if problem is None else Labels.of(problem)
    layout = state_layout.make_layout(mdp, own.xy, y_down=own.y_down)
    tracks, said = _tracks(model, problem)
    return {
        "scene": {
            "kind": layout.kind,
            "tile": layout.tile.tolist(),
            "at": np.round(layout.at, 3).tolist(),
            "labels": layout.labels,
            "named": mdp.state_names is not None,
            "columns": [],
            "road": None,
            "edges": state_layout.edges_of(mdp, layout) if layout.kind == "graph" else [],
            "actions": list(mdp.action_names or [f"action {a}" for a in range(mdp.n_actions)]),
            "features": list(mdp.feature_ids),
        },
        "model": map_numbers(mdp, layout, model) | {"theta": rounded(model.theta_), "label": type(model).__name__},
        "values": _feature_values(mdp, layout),
        "words": [str(text) for text in _listed(summary, "in_words")][:20],
        "estimates": _estimates(summary, mdp),
        "tracks": [one.states.tolist() for one in tracks],
        "scores": rounded(_scores(model, tracks)),
        "tracks_title": said,
    }


def _summary(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _listed(summary: dict[str, Any], name: str) -> list[Any]:
    """Return a list of fit.json, empty if the entry is anything else."""
    found = summary.get(name)
    return found if isinstance(found, list) else []


def _problem(named: str, mdp: MDP, known: dict[str, FolderEntry]) -> Problem | None:
    """Return the problem of a fit if its folder is one of the given ones; no other path in a file is followed."""
    from messirl.io.folder.reader import read_problem

    for key, place in known.items():
        if place.kind == PROBLEM and named and Path(named).name == place.path.name:
            try:
                problem = read_problem(open_folder(known, key, PROBLEM))
            except ValueError:
                continue
            if problem.mdp.n_states == mdp.n_states:
                return problem
    return None


def _tracks(model: Any, problem: Problem | None) -> tuple[Trajectories, str]:
    if problem is not None and len(problem.trajectories):
        return problem.trajectories[:TRACKS], "Trajectories of the problem folder"
    mdp: MDP = model.mdp_
    known = getattr(model, "goals_", None)  # not every method has goals
    goals = {} if known is None else {"goal": int(known[0])}
    drawn = model.sample(TRACKS // 2, None if mdp.horizon or goals or mdp.must_end else LENGTH, random_state=0, **goals)
    return drawn, "Trajectories sampled from the model; open the problem folder too to see its own"


def _scores(model: Any, tracks: Trajectories) -> list[float]:
    out = []
    for i in range(len(tracks)):
        try:
            out.append(float(model.score(tracks[i : i + 1])))
        except ValueError:
            out.append(float("nan"))
    return out


def _feature_values(mdp: MDP, layout: state_layout.Layout) -> list[Any]:
    """Return the value of each feature in each tile, (d, T); state-action features are averaged over actions."""
    table = mdp.feature_rows
    table = np.asarray(table.toarray() if hasattr(table, "toarray") else table, dtype=np.float64)
    if mdp.state_action:
        table = table.reshape(mdp.n_states, mdp.n_actions, -1).mean(axis=1)
    return [rounded(layout.mean(column)) for column in table.T]


def _estimates(summary: dict[str, Any], mdp: MDP) -> list[dict[str, Any]]:
    """Return the standard errors of the weights by feature; None where fit.json has none."""
    by_name = {str(row.get("name")): row for row in _listed(summary, "estimates") if isinstance(row, dict)}
    out = []
    for name in mdp.feature_ids:
        row = by_name.get(str(name), {})
        error = row.get("robust_std_error", row.get("std_error"))
        out.append({"error": rounded(float(error)) if isinstance(error, int | float) else None})
    return out
