"""The score of a choice is the derivative of its log-probability, for every kind of problem."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import problem
from seeds import generator
from worlds import drawn, random_mdp, without_actions

from messirl import MDP, Trajectories, soft_policy
from messirl.data.choices import choices_of
from messirl.objective import Objective
from messirl.planning.choice_scores import choice_scores

KINDS = ("finite", "endless", "episodic", "goals", "steps", "sparse", "risky", "risky goals")
STEP = 1e-5


def some(kind: str) -> tuple[MDP, Trajectories, np.ndarray]:
    """A problem of this kind, its trajectories, and a θ that is not the best one."""
    if kind.startswith("risky"):  # random moves, γ = 1, until an end
        ends = kind == "risky"
        mdp = random_mdp(3, by_step=ends, discount=1.0, terminal=np.arange(5) == 4 if ends else None)
        theta, start = np.array([-2.5, -2.0, -3.0]), np.array([0.5, 0.5, 0.0, 0.0, 0.0])
        if ends:
            return mdp, drawn(mdp, theta, 10, 5, start=start), theta
        return mdp, drawn(mdp, theta, 6, 5, start=start, goal=4) + drawn(mdp, theta, 6, 6, start=start, goal=2), theta
    mdp, expert, _ = problem(kind)
    return mdp, expert, np.array([-2.3, -0.4]) if mdp.n_features == 2 else np.array([0.7, -1.1, 0.3])


def log_probabilities(mdp: MDP, theta: np.ndarray, trajectories: Trajectories) -> np.ndarray:
    """log-probability of every choice one by one, from the policies that users get."""
    found = []
    for states, actions, goal in trajectories:
        policy = soft_policy(mdp, mdp.reward(theta), goal=goal)
        for t, s in enumerate(states[:-1]):
            row = policy[s] if mdp.horizon is None else policy[t, s]
            if actions is not None:
                found.append(np.log(row[actions[t]]))
            else:
                moves = mdp.transitions[np.arange(mdp.n_actions) + s * mdp.n_actions].toarray()
                found.append(np.log(row @ moves[:, states[t + 1]]))
    return np.array(found)


def scores(mdp: MDP, theta: np.ndarray, trajectories: Trajectories) -> tuple[np.ndarray, np.ndarray]:
    """One score per choice, and J's own gradient."""
    objective = Objective.from_trajectories(mdp, trajectories, objective="choices")
    choices = choices_of(mdp, trajectories)
    found = choice_scores(mdp, theta, choices, objective.planner.model, objective.planner.start)
    return found[choices.kind], objective(theta).gradient


@pytest.mark.parametrize("based", [False, True])
@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_score_is_the_derivative_of_the_log_probability(kind, recorded, based):
    mdp, expert, theta = some(kind)
    if based:
        usual = np.where(mdp.allowed, generator(7).uniform(0.2, 1.0, mdp.allowed.shape), 0.0)
        mdp = mdp.with_prior_policy(usual / np.maximum(usual.sum(axis=1, keepdims=True), 1e-9))
    if not recorded:
        expert = without_actions(expert)
    found, gradient = scores(mdp, theta, expert)
    slopes = [
        log_probabilities(mdp, theta + STEP * e, expert) - log_probabilities(mdp, theta - STEP * e, expert)
        for e in np.eye(theta.size)
    ]
    assert_allclose(found, np.array(slopes).T / (2 * STEP), atol=1e-7 * (1.0 + np.abs(found).max()))
    along = found.sum(axis=0)
    assert np.abs(along).max() > 1e-3  # not the best θ: there is a slope to compare
    assert_allclose(gradient @ along, np.linalg.norm(gradient) * np.linalg.norm(along), rtol=1e-9)


def test_expected_scores_are_zero():
    mdp, _, theta = some("endless")
    each = [Trajectories.from_lists([[s, s]], [[a]]) for s in range(5) for a in range(3)]
    found = np.concatenate([scores(mdp, theta, one)[0] for one in each]).reshape(5, 3, 3)
    policy = soft_policy(mdp, mdp.reward(theta))
    assert_allclose(np.einsum("sa,sad->sd", policy, found), 0.0, atol=1e-12)
