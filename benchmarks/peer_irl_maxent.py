"""irl-maxent: episodic, non-causal, dense; values not in log space.

From one corner to the other, γ = 1. Its backward pass always makes 2S steps, its forward pass runs until nothing
moves. Its values have no counterpart here (a path may pass through the end, and has exactly 2S steps); its forward
pass has, and must agree on the same policy. Its causal version does not run on current NumPy.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from irl_maxent import maxent, optimizer, trajectory

from benchmarks.problems import N_ACTIONS, dense_rows, grid, true_theta
from benchmarks.table import Row, seconds
from benchmarks.timing import median
from messirl import MDP, MaxEntIRL, Trajectories, sample, soft_policy, state_visitation

SIDE, STEPS, STEP_SIZE = 16, 20, 1e-3
BEGIN = -2.5  # reward of a step at first: endless walks must not pay


class Enough(Exception):
    """Ends its training, which has no limit of its own."""


class Steps(optimizer.Sga):
    """Plain gradient ascent that stops after a number of steps."""

    def reset(self, parameters) -> None:
        super().reset(parameters)
        self.left = STEPS

    def step(self, grad, *args, **kwargs) -> None:
        super().step(grad, *args, **kwargs)
        self.left -= 1
        if self.left == 0:
            raise Enough


def problem() -> tuple[MDP, np.ndarray, Trajectories]:
    """From the first state to the last; the same moves as (from, to, action); an expert."""
    plain = grid(SIDE, discount=1.0, horizon=None)
    states = np.arange(plain.n_states)
    mdp = plain.replace(terminal=states == states[-1], start=(states == 0).astype(float))
    moves = dense_rows(plain).reshape(states.size, N_ACTIONS, states.size).transpose(0, 2, 1)
    expert = sample(mdp, soft_policy(mdp, mdp.reward(true_theta() + BEGIN)), 200, random_state=0)
    return mdp, np.ascontiguousarray(moves), expert


def rows() -> Iterator[Row]:
    mdp, moves, expert = problem()
    policy = soft_policy(mdp, mdp.reward(true_theta() + BEGIN))
    their_visits = maxent.expected_svf_from_policy(moves, mdp.start, [mdp.n_states - 1], policy, eps=1e-9)
    np.testing.assert_allclose(state_visitation(mdp, policy), their_visits, atol=1e-6)

    walks = [
        trajectory.Trajectory(list(zip(walk.states[:-1], walk.actions, walk.states[1:], strict=True)))
        for walk in expert
    ]

    def other():
        try:
            maxent.irl(
                moves, mdp.features, [mdp.n_states - 1], walks, Steps(lambda _: STEP_SIZE), optimizer.Constant(BEGIN)
            )
        except Enough:
            return

    theirs = median(other, runs=1)
    for entropy, horizon in (("causal", None), ("noncausal", 2 * mdp.n_states + 1)):
        ended = mdp.replace(horizon=horizon)
        begin = np.full(mdp.n_features, BEGIN)
        model = MaxEntIRL(
            theta_max=None, entropy=entropy, solver="paper", step_size=STEP_SIZE, max_iter=STEPS, theta_init=begin
        )

        def ours(model=model, ended=ended):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(ended, expert)

        mine = median(ours)
        yield Row(
            f"{STEPS} gradient steps, {SIDE}², to a corner, {entropy}: irl-maxent (noncausal)",
            seconds(mine),
            seconds(theirs),
            theirs / mine,
        )
