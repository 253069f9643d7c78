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

_HOMES = {
    "Estimable": "messirl.io.folder.estimable",
    "Grid": "messirl.io.recordings.discretise",
    "InputError": "messirl.problem.errors",
    "KMeans": "messirl.io.recordings.discretise",
    "Problem": "messirl.problem.problem",
    "Recording": "messirl.io.recordings.recording",
    "check_problem": "messirl.io.folder.reader",
    "episodes_from_hdf5": "messirl.io.interop.hdf5",
    "episodes_from_minari": "messirl.io.interop.minari",
    "from_adjacency": "messirl.io.interop.graphs",
    "from_ass": "messirl.io.interop.axes",
    "from_gym": "messirl.io.interop.gym",
    "from_imitation": "messirl.io.interop.imitation",
    "from_minari": "messirl.io.interop.minari",
    "from_networkx": "messirl.io.interop.graphs",
    "from_quantecon": "messirl.io.interop.quantecon",
    "from_sas": "messirl.io.interop.axes",
    "from_ssa": "messirl.io.interop.axes",
    "gym_reward": "messirl.io.interop.gym",
    "problem_from_tables": "messirl.io.folder.build",
    "read_estimable": "messirl.io.folder.estimable",
    "read_problem": "messirl.io.folder.reader",
    "read_recordings": "messirl.io.sources",
    "read_trajectories": "messirl.io.folder.build",
    "record": "messirl.io.interop.gym",
    "recordings_from_numpy": "messirl.io.recordings.files",
    "recordings_from_table": "messirl.io.recordings.files",
    "recordings_from_trajectories": "messirl.io.recordings.recording",
    "select": "messirl.problem.filters",
    "to_ass": "messirl.io.interop.axes",
    "to_minari": "messirl.io.interop.minari",
    "to_quantecon": "messirl.io.interop.quantecon",
    "to_sas": "messirl.io.interop.axes",
    "to_ssa": "messirl.io.interop.axes",
    "to_table": "messirl.io.interop.imitation",
    "trajectories_from_recordings": "messirl.io.recordings.recording",
    "write_problem": "messirl.io.folder.writer",
    "write_trajectories": "messirl.io.folder.tracks",
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
__getattr__, __dir__ = lazily(__name__, _HOMES)
