"""How values towards goals bend with θ, and best paths: all goals at once against one at a time."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from seeds import generator

from messirl import MDP
from messirl.planning import Planner, soft_policy
from messirl.planning.goal_derivatives import OutOfReach, goals_gradients, goals_hessian
from messirl.planning.kernels.graph import best_paths

N, ACTIONS = 12, 3
GOALS = np.array([2, 5, 11])
THETA = np.array([-1.5, -1.1])


def ring(seed: int, *, by_state: bool, based: bool) -> MDP:
    """A ring with random chords, whose last state has no moves of its own."""
    rng = generator(seed)
    moves = np.zeros((N, ACTIONS, N))
    for s in range(N - 1):
        for a, t in enumerate([(s + 1) % (N - 1), int(rng.integers(N - 1)), int(rng.integers(N))]):
            moves[s, a, t] = 1.0
    moves[0, 2] = np.eye(N)[N - 1]
    mdp = MDP(moves, rng.uniform(0.5, 1.5, (N, 2) if by_state else (N, ACTIONS, 2)), discount=1.0)
    usual = rng.uniform(0.2, 1.0, (N, ACTIONS)) * mdp.allowed
    return mdp.with_prior_policy(usual / np.maximum(usual.sum(axis=1, keepdims=True), 1e-9)) if based else mdp


def one_goal(mdp: MDP, goal: int, source: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """∇V (S, d) and ∇² Σ source V of one goal, from dense chains of its policy."""
    policy = soft_policy(mdp, mdp.reward(THETA), goal=goal)
    moves = mdp.transitions.toarray().reshape(N, ACTIONS, N)
    own = mdp.features if mdp.state_action else np.repeat(mdp.features[:, None], ACTIONS, axis=1)
    gained = np.einsum("sa,sad->sd", policy, own)
    gained[goal] = 0.0 if mdp.state_action else mdp.features[goal]
    chain = np.eye(N) - np.einsum("sa,sat->st", policy, moves)
    slope = np.linalg.solve(chain, gained)
    ahead = own + np.einsum("sat,td->sad", moves, slope) - slope[:, None]
    taken = np.linalg.solve(chain.T, source)[:, None] * policy
    return slope, np.einsum("sa,sad,sae->de", taken, ahead, ahead)


@pytest.mark.parametrize("based", [False, True])
@pytest.mark.parametrize("by_state", [True, False])
@pytest.mark.parametrize("seed", [0, 1])
def test_slopes_and_curvature_of_all_goals_are_those_of_each_alone(seed, by_state, based):
    mdp = ring(seed, by_state=by_state, based=based)
    source = generator(seed + 1).normal(size=(GOALS.size, N))  # signed, as of choices
    source[:, N - 1] = 0.0
    planner = Planner.for_goals(mdp, "causal", np.repeat(np.arange(N - 1), 3), np.tile(GOALS, N - 1), np.ones(33))
    solution = planner.model.solve(mdp.reward(THETA))
    each = [one_goal(mdp, goal, own) for goal, own in zip(GOALS.tolist(), source, strict=True)]
    assert_allclose(goals_hessian(solution, source), sum(bend for _, bend in each), rtol=1e-9, atol=1e-9)
    for goal, slope, (known, _) in zip(GOALS, goals_gradients(solution, source), each, strict=True):
        met = np.arange(N) != N - 1 if goal != N - 1 else np.ones(N, dtype=bool)
        assert_allclose(slope[met], known[met], rtol=1e-9, atol=1e-9)


def test_goals_beyond_the_reach_of_doubles_are_left_to_others():
    """Trips along a line, at e⁻¹ a step and at e⁻¹²."""
    steps = 60
    moves = np.zeros((steps, 2, steps))
    for s in range(steps):
        moves[s, 0, min(s + 1, steps - 1)] = moves[s, 1, max(s - 1, 0)] = 1.0
    mdp = MDP(moves, np.ones((steps, 2, 1)), discount=1.0)
    planner = Planner.for_goals(mdp, "causal", np.array([0, steps - 1]), np.array([steps - 1, 0]), np.ones(2))
    near, far = (planner.model.solve(mdp.reward([theta])) for theta in (-1.0, -12.0))
    assert goals_hessian(near, planner.active_source) > 0.0
    assert len(list(goals_gradients(near, planner.active_source))) == 2
    with pytest.raises(OutOfReach):
        goals_hessian(far, planner.active_source)
    with pytest.raises(OutOfReach):
        next(goals_gradients(far, planner.active_source))


def paths_of(first: list[int], target: list[int], gain: list[float], end: list[float]) -> tuple[bool, np.ndarray]:
    best = np.array(end)
    return best_paths(np.array(first), np.array(target), np.array(gain), best), best


def test_a_cycle_that_gains_has_no_best_path_and_one_that_gains_nothing_has():
    """Two states that lead to each other, and the first also to an end."""
    nothing = -np.inf
    for lap, finite in ((-0.5, True), (0.0, True), (0.5, False)):
        found, best = paths_of([0, 2, 3, 3], [1, 2, 0], [1.0, -1.0, lap - 1.0], [nothing, nothing, 0.0])
        assert found == finite
        if finite:
            assert_array_equal(best, [-1.0, lap - 2.0, 0.0])


def test_a_long_cycle_that_gains_little_is_found_and_long_ways_are_not_mistaken_for_one():
    n = 400
    first, target = [0, 2, *range(3, n + 2), n + 1], [1, n, *range(2, n), 0]
    for last, finite in ((1.0 + 1e-6, False), (1.0 - 1e-6, True)):
        gain = [1.0, -7.0, *[0.0] * (n - 2), last - 2.0]
        found, best = paths_of(first, target, gain, [*[-np.inf] * n, 0.0])
        assert found == finite
        if finite:
            assert_allclose(best[:n], -7.0 + np.where(np.arange(n) > 0, last - 2.0, 0.0))
