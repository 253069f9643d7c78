"""Trajectories alone, as a table: trajectory_id, step, state, and where they are known action, goal and names."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np

from messirl._files import beside
from messirl.io.folder.labels import Labels
from messirl.problem.errors import InputError
from messirl.problem.mdp import MDP
from messirl.problem.trajectories import Trajectories

FORCE = "give another name, or --force (overwrite=True in Python) to replace it"


def write_trajectories(
    trajectories: Trajectories,
    path: str | os.PathLike[str],
    mdp: MDP | None = None,
    *,
    labels: Labels | None = None,
    overwrite: bool = False,
) -> None:
    """Write a .csv or .parquet that `read_trajectories` reads; an existing file is refused without `overwrite`.

    mdp : gives states and actions their names beside
    labels : what a folder calls them, instead of numbers
    """
    import pyarrow.csv
    import pyarrow.parquet

    place = check_table_place(path, overwrite=overwrite)
    write = pyarrow.csv.write_csv if place.suffix == ".csv" else pyarrow.parquet.write_table
    with beside(place) as part:
        write(_table(trajectories, mdp, labels or Labels()), part)


def trajectories_as_csv(trajectories: Trajectories, mdp: MDP | None = None, labels: Labels | None = None) -> str:
    """The same table as CSV text."""
    import pyarrow.csv

    sink = io.BytesIO()
    pyarrow.csv.write_csv(_table(trajectories, mdp, labels or Labels()), sink)
    return sink.getvalue().decode()


def check_table_place(path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """The path, if a table may be written there."""
    place = Path(path)
    if place.suffix not in (".csv", ".parquet"):
        raise InputError(str(place), "is neither .csv nor .parquet", "end its name in one of them")
    if place.exists() and not place.is_dir() and not overwrite:
        raise InputError(str(place), "is there already", FORCE)
    return place


def _table(trajectories: Trajectories, mdp: MDP | None, labels: Labels) -> Any:
    import pyarrow as pa

    left = trajectories.leaves
    columns: dict[str, Any] = {
        "trajectory_id": np.repeat(np.arange(len(trajectories)), trajectories.lengths),
        "step": trajectories.step,
        "state": _called(trajectories.states, labels.states),
    }
    names = None if mdp is None or mdp.state_names is None else list(mdp.state_names)
    if names is not None and names != labels.states:
        columns["state_name"] = _called(trajectories.states, names)
    if trajectories.actions is not None:
        taken = np.zeros(trajectories.states.size, dtype=np.int64)
        taken[left] = trajectories.actions
        columns["action"] = pa.array(_called(taken, labels.actions), mask=~left)
        names = None if mdp is None or mdp.action_names is None else list(mdp.action_names)
        if names is not None and names != labels.actions:
            columns["action_name"] = pa.array(_called(taken, names), mask=~left)
    if trajectories.goals is not None:
        columns["goal"] = _called(np.repeat(trajectories.goals, trajectories.lengths), labels.states)
    return pa.table(columns)


def _called(index: Any, labels: list[str] | None) -> Any:
    return index if labels is None else np.array(labels, dtype=object)[index]
