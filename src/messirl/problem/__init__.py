"""What the data is: the Markov decision process, the trajectories, their feature counts (paper, section 2)."""

from messirl.problem.counts import check_trajectories, feature_counts
from messirl.problem.mdp import MDP
from messirl.problem.trajectories import Trajectories, Trajectory

__all__ = ["MDP", "Trajectories", "Trajectory", "check_trajectories", "feature_counts"]
