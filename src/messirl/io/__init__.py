"""Readers and writers: problem folders, plain tables, and what other packages hold.

Names are imported when first used, so that nothing is loaded that is not needed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from messirl.io.build import problem_from_tables, read_trajectories
    from messirl.io.discretise import Grid, KMeans
    from messirl.io.errors import InputError
    from messirl.io.filters import select
    from messirl.io.folder import check_problem, read_problem
    from messirl.io.graphs import from_adjacency, from_networkx
    from messirl.io.gym import from_gym, gym_reward, record
    from messirl.io.hdf5 import episodes_from_hdf5
    from messirl.io.imitation import from_imitation, to_table
    from messirl.io.minari import episodes_from_minari, from_minari, to_minari
    from messirl.io.orders import from_ass, from_sas, from_ssa, to_ass, to_sas, to_ssa
    from messirl.io.problem import Problem
    from messirl.io.quantecon import from_quantecon, to_quantecon
    from messirl.io.recording_files import recordings_from_numpy, recordings_from_table
    from messirl.io.recordings import Recording, recordings_from_trajectories, trajectories_from_recordings
    from messirl.io.tracks import write_trajectories
    from messirl.io.writer import write_problem

_HOME = {
    "Grid": "discretise",
    "InputError": "errors",
    "KMeans": "discretise",
    "Problem": "problem",
    "Recording": "recordings",
    "check_problem": "folder",
    "episodes_from_hdf5": "hdf5",
    "episodes_from_minari": "minari",
    "from_adjacency": "graphs",
    "from_ass": "orders",
    "from_gym": "gym",
    "from_imitation": "imitation",
    "from_minari": "minari",
    "from_networkx": "graphs",
    "from_quantecon": "quantecon",
    "from_sas": "orders",
    "from_ssa": "orders",
    "gym_reward": "gym",
    "problem_from_tables": "build",
    "read_problem": "folder",
    "read_trajectories": "build",
    "record": "gym",
    "recordings_from_numpy": "recording_files",
    "recordings_from_table": "recording_files",
    "recordings_from_trajectories": "recordings",
    "select": "filters",
    "to_ass": "orders",
    "to_minari": "minari",
    "to_quantecon": "quantecon",
    "to_sas": "orders",
    "to_ssa": "orders",
    "to_table": "imitation",
    "trajectories_from_recordings": "recordings",
    "write_problem": "writer",
    "write_trajectories": "tracks",
}

__all__ = [
    "Grid",
    "InputError",
    "KMeans",
    "Problem",
    "Recording",
    "check_problem",
    "episodes_from_hdf5",
    "episodes_from_minari",
    "from_adjacency",
    "from_ass",
    "from_gym",
    "from_imitation",
    "from_minari",
    "from_networkx",
    "from_quantecon",
    "from_sas",
    "from_ssa",
    "gym_reward",
    "problem_from_tables",
    "read_problem",
    "read_trajectories",
    "record",
    "recordings_from_numpy",
    "recordings_from_table",
    "recordings_from_trajectories",
    "select",
    "to_ass",
    "to_minari",
    "to_quantecon",
    "to_sas",
    "to_ssa",
    "to_table",
    "trajectories_from_recordings",
    "write_problem",
    "write_trajectories",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"messirl.io.{_HOME[name]}"), name)
    raise AttributeError(f"module 'messirl.io' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
