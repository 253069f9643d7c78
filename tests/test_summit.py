"""A search on a likelihood that is not concave ends on a summit, not on a saddle."""

from __future__ import annotations

import numpy as np
import pytest
from seeds import generator

from messirl import MDP, MaxEntIRL, Trajectories
from messirl.estimators._saddle_point import ascent_direction
from messirl.objective import Objective


def fork(d: int = 1) -> MDP:
    """From 0 two ways, of features +1 and −1, lead to 1, and a third leads to 2; from there back. Nobody saw which."""
    moves = np.zeros((3, 3, 3))
    moves[0, :2, 1] = moves[0, 2, 2] = 1.0
    moves[1:, 0, 0] = 1.0
    features = np.zeros((3, 3, d))
    features[0, 0, 0], features[0, 1, 0] = 1.0, -1.0
    features[..., 1:] = generator(1).normal(size=(3, 3, d - 1)) * (d > 1)
    return MDP(moves, features, discount=0.9)


def trips(often: int, seldom: int) -> Trajectories:
    return Trajectories.from_lists([[0, 1] * 5] * often + [[0, 2] * 5] * seldom)


def test_zero_is_the_bottom_of_a_valley_and_the_search_leaves_it():
    mdp, expert = fork(), trips(9, 1)
    objective = Objective.from_trajectories(mdp, expert, objective="choices")
    assert objective([0.0]).gradient == pytest.approx([0.0], abs=1e-12)
    assert ascent_direction(objective, np.zeros(1), 500.0) is not None
    model = MaxEntIRL(objective="choices").fit(mdp, expert)
    assert model.converged_
    assert 2.0 * np.cosh(model.theta_[0]) / (2.0 * np.cosh(model.theta_[0]) + 1.0) == pytest.approx(0.9, abs=1e-6)
    assert model.objective_ > objective([0.0]).value + 0.1
    assert np.all(np.diff(model.history_.iteration) == 1)
    assert np.all(np.diff(model.history_.objective) >= -1e-12)


def test_a_summit_is_left_alone():
    mdp, expert = fork(), trips(9, 1)
    model = MaxEntIRL(objective="choices").fit(mdp, expert)
    objective = Objective.from_trajectories(mdp, expert, objective="choices")
    assert ascent_direction(objective, model.theta_, 500.0) is None
    counts = Objective.from_trajectories(mdp, Trajectories.from_lists([[0, 1] * 15], actions=[[0] * 29]))
    assert ascent_direction(counts, np.zeros(1), 500.0) is None


def test_a_weight_on_the_edge_of_the_box_does_not_rise():
    objective = Objective.from_trajectories(fork(), trips(9, 1), objective="choices")
    assert ascent_direction(objective, np.array([0.5]), 0.5) is None


def test_the_rise_is_found_among_many_features():
    mdp, expert = fork(20), trips(9, 1)
    objective = Objective.from_trajectories(mdp, expert, objective="choices", quadratic=np.eye(20) * 0.1)
    way = ascent_direction(objective, np.zeros(20), 500.0)
    assert way is not None
    bend = objective.hessian(np.zeros(20))
    assert way @ bend @ way > 0.0
