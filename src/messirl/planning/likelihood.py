"""Log-probability of trajectories under a policy, the start excluded.

    with actions:  Σ_t log π_t(a_t|s_t)        without:  Σ_t log Σ_a π_t(a|s_t) p(s_{t+1}|s_t, a)

Of a policy given as numbers, or of the soft policy of a reward: then log π = Q − V, finite however small π is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from messirl._types import Floats, Ints
from messirl.planning.paths import trips_of, values_by_goal
from messirl.planning.policies import values_where_met
from messirl.problem.faults import check_trajectories
from messirl.problem.mdp import MDP
from messirl.problem.moves import entry_keys, look_up
from messirl.problem.trajectories import Trajectories


def log_likelihood(mdp: MDP, policy: npt.ArrayLike | Mapping[int, Floats], trajectories: Trajectories) -> Floats:
    """log-probability of each trajectory, (n,); with goals, `policy` maps a goal to its policy."""
    check_trajectories(mdp, trajectories)
    if isinstance(policy, Mapping) == (trajectories.goals is None):
        raise ValueError(
            "this policy needs goals, and the trajectories have none"
            if trajectories.goals is None
            else "the trajectories have goals: give a mapping from goal to policy"
        )

    def logarithm(goal: int | None) -> Floats:
        table = np.asarray(policy if goal is None else policy[goal], dtype=np.float64)  # type: ignore[index]
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(table))

    return _by_goal(mdp, trajectories, logarithm)


def reward_log_likelihood(mdp: MDP, reward: Floats, trajectories: Trajectories, start: Floats) -> Floats:
    """log-probability of each trajectory under the soft (causal) policy of a reward, (n,).

    start : weights of where trajectories begin; states that cannot be met need have no finite value
    """
    check_trajectories(mdp, trajectories)
    out = np.zeros(len(trajectories))
    for which, log_policy in log_policies(mdp, reward, trajectories, start):
        out[which] = _sum_of_steps(mdp, log_policy, trajectories[which])
    return out


def log_policies(mdp: MDP, reward: Floats, trajectories: Trajectories, start: Floats) -> Iterator[tuple[Ints, Floats]]:
    """Goal by goal: which trajectories have it, and log π towards it, right in the states they visit."""
    goals = trajectories.goals
    if goals is None:
        yield np.arange(len(trajectories)), _log_policy(mdp, reward, values_where_met(mdp, reward, start), None)
        return
    for goal, values in _values_towards(mdp, reward, trajectories, goals, start):
        yield np.flatnonzero(goals == goal), _log_policy(mdp, reward, values, goal)


def _values_towards(
    mdp: MDP, reward: Floats, trajectories: Trajectories, goals: Ints, start: Floats
) -> Iterator[tuple[int, Floats]]:
    if mdp.discount == 1.0 and mdp.deterministic:
        every = np.repeat(goals, trajectories.lengths)
        yield from values_by_goal(mdp, reward, trips_of(mdp, trajectories.states, every, np.ones(every.size)))
        return
    for goal in np.unique(goals).tolist():
        yield goal, values_where_met(mdp, reward, start, goal)


def _log_policy(mdp: MDP, reward: Floats, values: Floats, goal: int | None) -> Floats:
    """Q − V: (H − 1, S, A), or (S, A); −inf where an action is never taken."""
    ahead = values[None, :] if mdp.horizon is None else values[1:]
    here = values[None, :] if mdp.horizon is None else values[:-1]
    q = mdp.discount * (mdp.transitions @ ahead.T).T.reshape(-1, mdp.n_states, mdp.n_actions)
    q = q + (reward[:, None] if reward.ndim == 1 else reward)
    ends = mdp.terminal if goal is None else np.arange(mdp.n_states) == goal
    taken = mdp.allowed & ~ends[:, None] & np.isfinite(q)
    with np.errstate(invalid="ignore"):
        log_policy = np.where(taken, q - here[..., None], -np.inf)
    return np.asarray(log_policy[0] if mdp.horizon is None else log_policy)


def _by_goal(mdp: MDP, trajectories: Trajectories, log_policy: Any) -> Floats:
    """Σ_t of every trajectory, with the log-policy of its goal (None: of no goal)."""
    if trajectories.goals is None:
        return _sum_of_steps(mdp, log_policy(None), trajectories)
    out = np.empty(len(trajectories))
    for goal in np.unique(trajectories.goals):
        which = np.flatnonzero(trajectories.goals == goal)
        out[which] = _sum_of_steps(mdp, log_policy(int(goal)), trajectories[which])
    return out


def _sum_of_steps(mdp: MDP, log_policy: Floats, trajectories: Trajectories) -> Floats:
    left = np.flatnonzero(trajectories.leaves)
    states, entered = trajectories.states[left], trajectories.states[left + 1]
    where: tuple[Any, ...] = (states,) if mdp.horizon is None else (trajectories.step[left], states)
    if trajectories.actions is not None:
        steps = log_policy[(*where, trajectories.actions)]
    else:
        with np.errstate(divide="ignore"):
            steps = logsumexp(log_policy[where] + np.log(_chances(mdp, states, entered)), axis=1)
    trip = np.repeat(np.arange(len(trajectories)), trajectories.lengths - 1)
    return np.bincount(trip, steps, len(trajectories)).astype(np.float64)


def move_probability(mdp: MDP, rows: Floats, states: Ints, entered: Ints) -> Floats:
    """Σ_a π(a|s) p(s'|s,a) of every step; rows (N, A) are the policies where the steps start."""
    return np.asarray((rows * _chances(mdp, states, entered)).sum(axis=1))


def _chances(mdp: MDP, states: Ints, entered: Ints) -> Floats:
    """p(s'|s,a) of every step, (N, A)."""
    keys, data = entry_keys(mdp), mdp.transitions.data
    out = np.zeros((states.size, mdp.n_actions))
    for a in range(mdp.n_actions):
        at, there = look_up(keys, (states * mdp.n_actions + a) * mdp.n_states + entered)
        out[there, a] = data[at[there]]
    return out
