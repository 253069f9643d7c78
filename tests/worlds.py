"""Small problems that several tests share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from seeds import generator, shifted

from messirl import MDP, Trajectories, sample, soft_policy

# For fits to a tolerance that rounding need not let them reach: near its top the objective changes by the square of
# what is left of the gradient, so that below a hundred-millionth it is the processor that decides whether there is a
# warning. The test goes by the numbers that were found.
to_rounding = pytest.mark.filterwarnings("ignore:.*rounding is reached:sklearn.exceptions.ConvergenceWarning")
ROUNDING = 1e-12  # the same sum of some hundred numbers, added in whatever order a processor likes


def random_mdp(
    seed: int = 0,
    n_states: int = 5,
    n_actions: int = 3,
    n_features: int = 3,
    *,
    by_step: bool = False,
    **rest: Any,
) -> MDP:
    """An action mostly leads to one state but may lead to any. Features in [0, 1), of steps if `by_step`."""
    rng = generator(seed)
    likely = rng.permuted(np.tile(np.arange(n_states), (n_states, 1)), axis=1)[:, np.arange(n_actions) % n_states]
    transitions = 0.8 * np.eye(n_states)[likely] + 0.2 * rng.dirichlet(np.ones(n_states), size=(n_states, n_actions))
    shape = (n_states, n_actions, n_features) if by_step else (n_states, n_features)
    return MDP(transitions, rng.random(shape), **rest)


def ring(n_states: int = 4, **arguments: Any) -> MDP:
    """Action 0 stays, action 1 goes on to the next state; one feature a state but for the last."""
    stay = np.eye(n_states)
    transitions = np.stack([stay, np.roll(stay, 1, axis=1)], axis=1)
    return MDP(transitions, stay[:, :-1], **arguments)


def maze(rows: int = 3, columns: int = 3, features: Any = None, **arguments: Any) -> MDP:
    """Deterministic moves north, east, south and west; those that leave the maze are not allowed."""
    n = rows * columns
    transitions = np.zeros((n, 4, n))
    for s in range(n):
        r, c = divmod(s, columns)
        for a, (down, right) in enumerate([(-1, 0), (0, 1), (1, 0), (0, -1)]):
            if 0 <= r + down < rows and 0 <= c + right < columns:
                transitions[s, a, (r + down) * columns + c + right] = 1.0
    if features is None:  # what a visit costs anywhere, and more in every fifth state
        features = np.column_stack([np.ones(n), np.arange(n) % 5 == 1])
    return MDP(transitions, features, **arguments)


def drawn(mdp: MDP, theta: Any, n: int, seed: int, **arguments: Any) -> Trajectories:
    """Trajectories of the soft policy of θ."""
    policy = soft_policy(mdp, mdp.reward(theta), goal=arguments.get("goal"))
    return sample(mdp, policy, n, random_state=shifted(seed), **arguments)


def without_actions(trajectories: Trajectories) -> Trajectories:
    return Trajectories(trajectories.states, trajectories.offsets, None, trajectories.goals)


def never_falls(values: Any) -> bool:
    """Whether each value is at least the one before, but for the rounding of the sums that they are."""
    return bool((np.diff(values) >= -ROUNDING * (1.0 + np.abs(values[1:]))).all())
