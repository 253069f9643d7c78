"""Markov decision processes, trajectories, feature counts and problems (paper, section 2)."""

from messirl.data.errors import InputError
from messirl.data.feature_counts import feature_counts
from messirl.data.mdp import MDP
from messirl.data.problem import Problem
from messirl.data.trajectories import Trajectories, Trajectory
from messirl.data.validation import check_trajectories

__all__ = ["MDP", "InputError", "Problem", "Trajectories", "Trajectory", "check_trajectories", "feature_counts"]
