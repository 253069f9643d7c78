"""Public names and their modules; imported when first used."""

from messirl.data.errors import InputError as InputError
from messirl.data.filters import select as select
from messirl.data.problem import Problem as Problem
from messirl.data.streamed_trajectories import StreamedTrajectories as StreamedTrajectories
from messirl.io.folder.build_problem import (
    problem_from_tables as problem_from_tables,
    read_trajectories as read_trajectories,
)
from messirl.io.folder.reader import check_problem as check_problem, read_problem as read_problem
from messirl.io.folder.trajectory_table import write_trajectories as write_trajectories
from messirl.io.folder.unknown_dynamics import Estimable as Estimable, read_estimable as read_estimable
from messirl.io.folder.writer import write_problem as write_problem
from messirl.io.interop.graphs import from_adjacency as from_adjacency, from_networkx as from_networkx
from messirl.io.interop.gym import from_gym as from_gym, gym_reward as gym_reward, record as record
from messirl.io.interop.hdf5 import episodes_from_hdf5 as episodes_from_hdf5
from messirl.io.interop.imitation import from_imitation as from_imitation, to_table as to_table
from messirl.io.interop.minari import (
    episodes_from_minari as episodes_from_minari,
    from_minari as from_minari,
    to_minari as to_minari,
)
from messirl.io.interop.quantecon import from_quantecon as from_quantecon, to_quantecon as to_quantecon
from messirl.io.recording_sources import read_recordings as read_recordings
from messirl.io.recordings.discretise import Grid as Grid, Hexagons as Hexagons, KMeans as KMeans
from messirl.io.recordings.files import (
    recordings_from_numpy as recordings_from_numpy,
    recordings_from_table as recordings_from_table,
)
from messirl.io.recordings.recording import (
    Recording as Recording,
    recordings_from_trajectories as recordings_from_trajectories,
    trajectories_from_recordings as trajectories_from_recordings,
)
