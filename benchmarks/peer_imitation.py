"""imitation: finite-horizon maximum causal entropy, dense.

Its horizon counts choices, ours states, and its last value is r + log A where ours is r. So with the same number H for
both, its policies at t < H − 1 and its visits of the first H states are ours, and V_t − V_t(ours) = γ^{H−1−t} log A.
It makes one choice and one step more than we do: 1 % more work at H = 100.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from imitation.algorithms import mce_irl
from imitation.rewards import reward_nets
from imitation.util import logger
from seals.base_envs import TabularModelPOMDP

from benchmarks.problems import N_ACTIONS, dense_rows, grid, true_theta
from benchmarks.table import Row, seconds
from benchmarks.timing import compare
from messirl import MDP, soft_policy, soft_values, state_visitation
from messirl.objective import Objective
from messirl.optim.fixed_steps import paper
from messirl.planning import Planner

HORIZON = 100
SIDES = {16: 15, 32: 7, 64: 3}  # side: rounds
STEPS = 100


def world(mdp: MDP) -> Any:
    """The grid as imitation wants it."""
    return TabularModelPOMDP(
        transition_matrix=dense_rows(mdp).reshape(mdp.n_states, N_ACTIONS, mdp.n_states),
        observation_matrix=np.asarray(mdp.features),
        reward_matrix=np.zeros(mdp.n_states),
        horizon=HORIZON,
        initial_state_dist=mdp.start,
    )


def rows() -> Iterator[Row]:
    for side, rounds in SIDES.items():
        yield evaluation(side, rounds)
    yield training()


def evaluation(side: int, rounds: int) -> Row:
    """One gradient: its two functions against our two."""
    mdp = grid(side, discount=0.99, horizon=HORIZON)
    env, reward = world(mdp), mdp.reward(true_theta())

    def ours():
        policy = soft_policy(mdp, reward)
        return policy, state_visitation(mdp, policy)

    def other():
        value, _, policy = mce_irl.mce_partition_fh(env, reward=reward, discount=mdp.discount)
        return value, policy, mce_irl.mce_occupancy_measures(env, reward=reward, pi=policy, discount=mdp.discount)[0]

    (policy, visits), (value, their_policy, reached) = ours(), other()
    powers = mdp.discount ** np.arange(HORIZON)
    shift = powers[::-1, None] * np.log(N_ACTIONS)
    np.testing.assert_allclose(soft_values(mdp, reward), value - shift, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(policy, their_policy[:-1], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(visits, powers @ reached[:HORIZON], rtol=1e-9, atol=1e-9)
    times = compare(ours, other, rounds)
    return Row(
        f"one evaluation, {side}², horizon {HORIZON}: imitation", seconds(times.ours), seconds(times.other), times.ratio
    )


class Linear(reward_nets.RewardNet):
    """r(s) = θᵀ f(s), θ = 0 at first, in double precision."""

    def __init__(self, env: Any) -> None:
        super().__init__(env.observation_space, env.action_space, normalize_images=False)
        self.theta = torch.nn.Parameter(torch.zeros(env.obs_dim, dtype=torch.float64))

    def forward(self, state, action, next_state, done):
        return state @ self.theta


def training() -> Row:
    """100 gradient steps each on 16², γ = 1, from the expert's exact visits: what a step costs with all around it."""
    mdp = grid(16, discount=1.0, horizon=HORIZON)
    env, reward = world(mdp), mdp.reward(true_theta())
    expert = state_visitation(mdp, soft_policy(mdp, reward))
    their_expert = mce_irl.mce_occupancy_measures(env, reward=reward)[1]
    silent = logger.configure(None, format_strs=[])

    def ours():
        objective = Objective(mdp, Planner(mdp, "causal", mdp.start), mdp.counts(expert))
        return paper(objective, np.zeros(mdp.n_features), bound=np.inf, max_iter=STEPS, step_size=0.01, tol=0.0)

    def other():
        model = mce_irl.MCEIRL(
            their_expert,
            env,
            Linear(env),
            np.random.default_rng(0),
            linf_eps=0.0,
            grad_l2_eps=0.0,
            log_interval=None,
            custom_logger=silent,
        )
        return model.train(STEPS)

    times = compare(ours, other, rounds=3)
    return Row(
        f"{STEPS} gradient steps, 16², horizon {HORIZON}: imitation",
        seconds(times.ours),
        seconds(times.other),
        times.ratio,
    )
