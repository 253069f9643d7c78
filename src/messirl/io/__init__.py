"""Readers and writers: problem folders, plain tables, and what other packages hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from messirl._lazy import lazily

if TYPE_CHECKING:
    from messirl.io.folder.build import problem_from_tables, read_trajectories
    from messirl.io.folder.estimable import Estimable, read_estimable
    from messirl.io.folder.reader import check_problem, read_problem
    from messirl.io.folder.tracks import write_trajectories
    from messirl.io.folder.writer import write_problem
    from messirl.io.interop.axes import from_ass, from_sas, from_ssa, to_ass, to_sas, to_ssa
    from messirl.io.interop.graphs import from_adjacency, from_networkx
    from messirl.io.interop.gym import from_gym, gym_reward, record
    from messirl.io.interop.hdf5 import episodes_from_hdf5
    from messirl.io.interop.imitation import from_imitation, to_table
    from messirl.io.interop.minari import episodes_from_minari, from_minari, to_minari
    from messirl.io.interop.quantecon import from_quantecon, to_quantecon
    from messirl.io.recordings.discretise import Grid, KMeans
    from messirl.io.recordings.files import recordings_from_numpy, recordings_from_table
    from messirl.io.recordings.recording import Recording, recordings_from_trajectories, trajectories_from_recordings
    from messirl.io.sources import read_recordings
    from messirl.problem.errors import InputError
    from messirl.problem.filters import select
    from messirl.problem.problem import Problem

_NAMES = {
    "messirl.io.folder.build": ["problem_from_tables", "read_trajectories"],
    "messirl.io.folder.estimable": ["Estimable", "read_estimable"],
    "messirl.io.folder.reader": ["check_problem", "read_problem"],
    "messirl.io.folder.tracks": ["write_trajectories"],
    "messirl.io.folder.writer": ["write_problem"],
    "messirl.io.interop.axes": ["from_ass", "from_sas", "from_ssa", "to_ass", "to_sas", "to_ssa"],
    "messirl.io.interop.graphs": ["from_adjacency", "from_networkx"],
    "messirl.io.interop.gym": ["from_gym", "gym_reward", "record"],
    "messirl.io.interop.hdf5": ["episodes_from_hdf5"],
    "messirl.io.interop.imitation": ["from_imitation", "to_table"],
    "messirl.io.interop.minari": ["episodes_from_minari", "from_minari", "to_minari"],
    "messirl.io.interop.quantecon": ["from_quantecon", "to_quantecon"],
    "messirl.io.recordings.discretise": ["Grid", "KMeans"],
    "messirl.io.recordings.files": ["recordings_from_numpy", "recordings_from_table"],
    "messirl.io.recordings.recording": ["Recording", "recordings_from_trajectories", "trajectories_from_recordings"],
    "messirl.io.sources": ["read_recordings"],
    "messirl.problem.errors": ["InputError"],
    "messirl.problem.filters": ["select"],
    "messirl.problem.problem": ["Problem"],
}
__all__ = [
    "Estimable",
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
    "read_estimable",
    "read_problem",
    "read_recordings",
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
__getattr__, __dir__ = lazily(__name__, _NAMES)
