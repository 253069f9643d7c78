"""Tables of trajectories: trajectory_id, step, state and, if known, action, goal and names."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np

from messirl._files import atomic_path, check_writable
from messirl._types import Ints
from messirl.data.errors import InputError
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.io.folder.labels import Labels, called

ORDER = ("trajectory_id", "step", "state", "state_name", "action", "action_name", "goal")
FORCE = "give another name, or `force` (overwrite=True in Python) to replace it"


def write_trajectories(
    trajectories: Trajectories,
    path: str | os.PathLike[str],
    mdp: MDP | None = None,
    *,
    labels: Labels | None = None,
    overwrite: bool = False,
) -> None:
    """Write a .csv or .parquet that `read_trajectories` reads; an existing file is replaced only with `overwrite`.

    mdp : adds columns with the names of states and actions
    labels : labels of states and actions, instead of numbers
    """
    import pyarrow.csv
    import pyarrow.parquet

    place = check_table_place(path, overwrite=overwrite)
    write = pyarrow.csv.write_csv if place.suffix == ".csv" else pyarrow.parquet.write_table
    with atomic_path(place) as part:
        write(_table(trajectories, mdp, labels or Labels()), part)


def trajectories_as_csv(trajectories: Trajectories, mdp: MDP | None = None, labels: Labels | None = None) -> str:
    """Return the table that `write_trajectories` writes, as CSV text."""
    import pyarrow.csv

    sink = io.BytesIO()
    pyarrow.csv.write_csv(_table(trajectories, mdp, labels or Labels()), sink)
    return sink.getvalue().decode()


def check_table_place(path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Return the path; raise InputError if no table may be written there."""
    place = Path(path)
    if place.suffix not in (".csv", ".parquet"):
        raise InputError(str(place), "is neither .csv nor .parquet", "use one of these suffixes")
    if place.exists() and not place.is_dir() and not overwrite:
        raise InputError(str(place), "already exists", FORCE)
    check_writable(place)
    return place


def step_columns(trajectories: Trajectories, labels: Labels) -> dict[str, Any]:
    """Return the columns of every table of trajectories: trajectory_id, step, state and, if known, action."""
    columns = {
        "trajectory_id": called(np.repeat(np.arange(len(trajectories)), trajectories.lengths)),
        "step": called(trajectories.step),
        "state": called(trajectories.states, labels.states),
    }
    if trajectories.actions is not None:
        columns["action"] = called(_actions_taken(trajectories), labels.actions)
    return columns


def _table(trajectories: Trajectories, mdp: MDP | None, labels: Labels) -> Any:
    import pyarrow as pa

    columns = step_columns(trajectories, labels)
    for name, index, own in (
        ("state", trajectories.states, labels.states),
        ("action", None if trajectories.actions is None else _actions_taken(trajectories), labels.actions),
    ):
        names = None if mdp is None else getattr(mdp, f"{name}_names")
        if names is not None and index is not None and list(names) != own:
            columns[f"{name}_name"] = called(index, list(names))
    if trajectories.goals is not None:
        columns["goal"] = called(np.repeat(trajectories.goals, trajectories.lengths), labels.states)
    return pa.table(columns).select([name for name in ORDER if name in columns])


def _actions_taken(trajectories: Trajectories) -> Ints:
    """Return the action taken at each entry of `states`, −1 at the end of a trajectory."""
    taken = np.full(trajectories.states.size, -1)
    taken[trajectories.leaves] = trajectories.actions
    return taken
