"""Trajectories alone, as a table: trajectory_id, step, state, and where they are known action, goal and names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from messirl.io.errors import InputError
from messirl.problem.files import beside
from messirl.problem.mdp import MDP
from messirl.problem.trajectories import Trajectories


def write_trajectories(trajectories: Trajectories, path: str | os.PathLike[str], mdp: MDP | None = None) -> None:
    """Write a .csv or .parquet that `read_trajectories` reads; `mdp` gives states and actions their names beside."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    place = Path(path)
    if place.suffix not in (".csv", ".parquet"):
        raise InputError(str(place), "is neither .csv nor .parquet", "end its name in one of them")
    columns: dict[str, Any] = {
        "trajectory_id": np.repeat(np.arange(len(trajectories)), trajectories.lengths),
        "step": trajectories.step,
        "state": trajectories.states,
    }
    if mdp is not None and mdp.state_names is not None:
        columns["state_name"] = [mdp.state_names[s] for s in trajectories.states]
    if trajectories.actions is not None:
        taken = np.zeros(trajectories.states.size, dtype=np.int64)
        taken[trajectories.leaves] = trajectories.actions
        columns["action"] = pa.array(taken, mask=~trajectories.leaves)
        if mdp is not None and mdp.action_names is not None:
            names = [mdp.action_names[a] for a in taken]
            columns["action_name"] = pa.array(names, mask=~trajectories.leaves)
    if trajectories.goals is not None:
        columns["goal"] = np.repeat(trajectories.goals, trajectories.lengths)
    write = pyarrow.csv.write_csv if place.suffix == ".csv" else pyarrow.parquet.write_table
    with beside(place) as part:
        write(pa.table(columns), part)
