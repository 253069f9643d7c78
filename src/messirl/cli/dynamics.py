"""`messirl fit --dynamics estimated`: a folder, with or without edges, where moves lead counted from trajectories."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from messirl.cli.common import note
from messirl.cli.reading import Data, divide
from messirl.dynamics import EstimatedMDP, estimate_mdp
from messirl.io.checks import ANY, Faults, Ids
from messirl.io.folder.build import all_notes
from messirl.io.folder.content import read_meta, read_states, read_steps
from messirl.io.folder.reader import SUFFIXES, read_problem, settled
from messirl.io.folder.settings import SETTINGS, Settings, read_settings
from messirl.io.folder.swap import current
from messirl.io.tables import Table, load_table
from messirl.problem.counts import check_trajectories
from messirl.problem.errors import InputError
from messirl.problem.problem import Problem
from messirl.problem.trajectories import Trajectories

NAMES = ("state_names", "action_names", "feature_names")


def read_estimated(arguments: argparse.Namespace) -> tuple[Data, EstimatedMDP]:
    """The folder, divided, with the MDP that its trajectories outside of --test speak of.

    Edges, where there are any, say which moves are possible; their probabilities are not used.
    """
    problem, told = _problem(arguments.folder)
    for text in problem.notes:
        note(text)
    every = problem.trajectories
    if len(every) == 0:
        raise ValueError(f"{arguments.folder} holds no trajectory: there is nothing to learn from")
    rows = divide(problem.facts, arguments)
    seen = np.arange(len(every)) if rows["test"] is None else np.setdiff1d(np.arange(len(every)), rows["test"])
    expert = every[rows["expert"]]
    if expert.lengths.max() < 2:
        raise ValueError("no expert trajectory makes a step: there is no choice to learn from")
    estimated = estimate_mdp(every[seen], prior=arguments.prior or 0.0, **told)
    test = None if rows["test"] is None else _possible(estimated, every[rows["test"]])
    unlabelled = None if rows["unlabelled"] is None else every[rows["unlabelled"]]
    return Data(replace(problem, mdp=estimated.mdp, edge_columns={}), expert, unlabelled, test, rows), estimated


def evidence(estimated: EstimatedMDP) -> dict[str, Any]:
    """What the data says of the dynamics, for fit.json; pairs and states by number."""
    report = estimated.report
    return {
        "kind": "estimated",
        "prior": estimated.prior,
        "transitions": report.n_transitions,
        "state_action_pairs": report.n_pairs,
        "actions_inferred": report.actions_inferred,
        "states_never_left": report.never_left,
        "states_never_visited": len(report.never_visited),
        "states_without_moves": len(report.without_moves),
        "pairs_never_seen": len(report.never_seen),
        f"pairs_seen_fewer_than_{report.least}_times": len(report.thin),
        "report": str(report).splitlines(),
    }


def _possible(estimated: EstimatedMDP, test: Trajectories) -> Trajectories | None:
    """The held-out trajectories that the estimate allows, and that make a step."""

    def allowed(i: int) -> bool:
        try:
            check_trajectories(estimated.mdp, test[[i]])
        except ValueError:
            return False
        return True

    kept = [i for i in range(len(test)) if test.lengths[i] > 1 and allowed(i)]
    if len(kept) < len(test):
        note(
            f"{len(test) - len(kept)} of the {len(test)} trajectories of --test make no step, or one that was never "
            "seen outside of them, and are not scored; edges with --prior above 0 make such steps possible"
        )
    return test[kept] if kept else None


def _problem(folder: Path) -> tuple[Problem, dict[str, Any]]:
    """A folder and what it tells `estimate_mdp`."""
    if _places(current(folder), "edges"):
        problem = read_problem(folder)
        mdp = problem.mdp
        if mdp.features.ndim == 3 or mdp.features.shape[0] != mdp.n_states:
            raise InputError(
                "edges", "have features g_*, which depend on the dynamics", "use f_* of the states, or known dynamics"
            )
        told = {
            name: getattr(mdp, name)
            for name in ("features", "n_actions", "discount", "horizon", "terminal", "start", *NAMES)
        }
        return problem, {**told, "n_states": mdp.n_states, "graph": mdp.transitions}
    return _without_edges(folder)


def _without_edges(folder: Path) -> tuple[Problem, dict[str, Any]]:
    if not folder.is_dir():
        raise InputError(str(folder), "is not a folder", "give the folder that holds states and trajectories")
    faults = Faults()
    folder = settled(faults, folder)
    settings = read_settings(folder / SETTINGS)
    states, moves = _table(folder, "states"), _table(folder, "trajectories")
    tables = {"states": states, "trajectories": moves}
    found = read_states(faults, states)
    assert found.ids is not None, "what is wrong was raised"
    if not found.feature_names:
        raise InputError(states.where, "has no feature", "add a column f_… for each")
    actions = _action_ids(moves, settings)
    steps = read_steps(faults, moves, found.ids, actions)
    assert steps is not None, "what is wrong was raised"
    meta: Mapping[str, Any] = {}
    goals = None
    if _places(folder, "trajectory_meta"):
        tables["trajectory_meta"] = _table(folder, "trajectory_meta")
        meta, goals = read_meta(faults, tables["trajectory_meta"], steps.ids, found.ids)
    trajectories = Trajectories(steps.states, steps.offsets, steps.actions, goals)
    labels = None if actions is None else actions.array()
    told = {
        "features": found.features,
        "n_actions": None if actions is None or actions.n == ANY else actions.n,
        "discount": settings.discount,
        "horizon": settings.horizon,
        "terminal": found.terminal,
        "start": found.start,
        "state_names": found.names or settings.names.get("state_names", _text(found.ids.array())),
        "action_names": settings.names.get("action_names", _text(labels)),
        "feature_names": settings.names.get("feature_names", found.feature_names),
    }
    everything = estimate_mdp(trajectories, **told).mdp  # names what is wrong with any of them, held out or not
    problem = Problem(
        everything,
        trajectories,
        meta,
        steps.ids.array(),
        found.ids.array(),
        labels,
        found.xy,
        found.columns,
        step_columns=steps.columns,
        notes=all_notes(faults, tables),
    )
    return problem, told


def _places(folder: Path, name: str) -> list[Path]:
    return [folder / f"{name}{suffix}" for suffix in SUFFIXES if (folder / f"{name}{suffix}").exists()]


def _table(folder: Path, name: str) -> Table:
    there = _places(folder, name)
    if len(there) > 1:
        raise InputError(folder.name, f"holds both {there[0].name} and {there[1].name}", "keep one of them")
    if not there:
        raise InputError(folder.name, f"holds neither {name}.parquet nor {name}.csv", "add the table")
    return load_table(there[0])


def _action_ids(table: Table, settings: Settings) -> Ids | None:
    """What the trajectories call actions: names of problem.json, else their own labels, else numbers."""
    if "action" not in table.cells:
        return None
    column, names = table.column("action"), settings.names.get("action_names")
    if column.kind == "text":
        labels = names or sorted(set(column.text.drop_null().to_pylist()) - {""})
        return Ids("action", len(labels), pa.array(labels, pa.string()))
    return Ids("action", len(names) if names else settings.n_actions or ANY)


def _text(labels: Any) -> list[str] | None:
    return None if labels is None else [str(label) for label in labels]
