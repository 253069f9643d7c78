"""Endless discounted problems: our solve against plain soft value-iteration sweeps with the same compiled sweep."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.problems import grid, true_theta
from benchmarks.table import Row, seconds
from benchmarks.timing import compare
from messirl import MDP, soft_policy, soft_values, state_visitation
from messirl.planning.backups import soft_backup
from messirl.planning.memory_layout import layout_of, terms_of
from messirl.planning.reachability import structure_of

RESIDUAL = 1e-8
CASES = ((16, 0.95, None), (16, 0.99, None), (64, 0.95, None), (64, 0.99, 3.0))


def swept(mdp: MDP, reward: np.ndarray) -> tuple[np.ndarray, int]:
    """V ← T V until it moves by no more than 1e-8; values and the number of sweeps."""
    layout = layout_of(mdp)
    terms = terms_of(layout, reward, structure_of(mdp).live)
    value, ahead = np.zeros(layout.padded), np.zeros(layout.padded)
    policy = np.empty((mdp.n_actions, layout.padded))
    sweeps = 0
    while True:
        soft_backup(layout, terms, mdp.discount, value, ahead, policy)
        sweeps += 1
        if np.abs(ahead[: mdp.n_states] - value[: mdp.n_states]).max() <= RESIDUAL:
            return ahead[: mdp.n_states], sweeps
        value, ahead = ahead, value


def rows() -> Iterator[Row]:
    for side, discount, target in CASES:
        mdp = grid(side, discount=discount, horizon=None)
        reward = mdp.reward(true_theta())

        def sweeps(mdp=mdp, reward=reward):
            return swept(mdp, reward)

        def solve(mdp=mdp, reward=reward):
            return soft_policy(mdp, reward)

        def evaluate(mdp=mdp, reward=reward):
            policy = soft_policy(mdp, reward)
            return policy, state_visitation(mdp, policy)

        plain, n = sweeps()
        error = RESIDUAL * discount / (1.0 - discount)  # of values whose residual is 1e-8
        np.testing.assert_allclose(soft_values(mdp, reward), plain, rtol=0.0, atol=2.0 * error)
        evaluate()
        for what, call, wanted in (("policy", solve, target), ("policy and visits", evaluate, target)):
            times = compare(call, sweeps)
            yield Row(
                f"endless, {side}², γ {discount:g}, {what}: {n} sweeps for V alone",
                seconds(times.ours),
                seconds(times.other),
                times.ratio,
                wanted,
            )
