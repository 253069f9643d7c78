"""Markov decision processes, trajectories, feature counts and problems (paper, section 2)."""

from messirl.problem.counts import feature_counts
from messirl.problem.errors import InputError
from messirl.problem.faults import check_trajectories
from messirl.problem.mdp import MDP
from messirl.problem.problem import Problem
from messirl.problem.trajectories import Trajectories, Trajectory

__all__ = ["MDP", "InputError", "Problem", "Trajectories", "Trajectory", "check_trajectories", "feature_counts"]
