"""Log-probability of trajectories under a policy, the start excluded.

    with actions:  Σ_t log π_t(a_t|s_t)        without:  Σ_t log Σ_a π_t(a|s_t) p(s_{t+1}|s_t, a)

Either of a policy given as numbers, or of the soft policy of a reward: then log π = Q − V, finite however small π is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components
from scipy.special import logsumexp

from messirl._types import Floats, Ints
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.data.transition_index import transition_probabilities
from messirl.data.validation import check_trajectories
from messirl.planning._validation import check_probabilities, checked_policy
from messirl.planning.planner import solution_from_start, values_by_goal
from messirl.planning.policy_chain import chain_matrix
from messirl.planning.reachability import ends_of
from messirl.planning.solution import NoFiniteValue


def log_likelihood(mdp: MDP, policy: npt.ArrayLike | Mapping[int, Floats], trajectories: Trajectories) -> Floats:
    """Return the log-probability of each trajectory, (n,); with goals, `policy` maps a goal to its policy."""
    check_trajectories(mdp, trajectories)
    if isinstance(policy, Mapping) == (trajectories.goals is None):
        raise ValueError(
            "policy is a mapping from goals, but the trajectories have no goals: give an array"
            if trajectories.goals is None
            else "the trajectories have goals: give policy as a mapping from goal to policy"
        )
    goals, out = trajectories.goals, np.empty(len(trajectories))
    every: list[Any] = [None] if goals is None else np.unique(goals).tolist()
    for goal in every:
        which = slice(None) if goal is None else np.flatnonzero(goals == goal)
        if isinstance(policy, Mapping) and goal not in policy:
            raise ValueError(f"policy has no goal {goal}, which trajectories have: give one policy per goal")
        some, table = trajectories[which], checked_policy(mdp, policy[goal] if isinstance(policy, Mapping) else policy)
        met = np.zeros(table.shape[:-1], dtype=bool)
        met[mdp.at(some.step[some.leaves], some.states[some.leaves])] = True
        check_probabilities(table, met)
        with np.errstate(divide="ignore", invalid="ignore"):
            out[which] = sum_of_steps(mdp, np.log(table), some)
    return out


def reward_log_likelihood(
    mdp: MDP, reward: Floats, trajectories: Trajectories, start: Floats, values: Floats | None = None
) -> Floats:
    """Return the log-probability of each trajectory under the soft (causal) policy of a reward, (n,).

    start : weights of initial states; states reachable neither from there nor by these trajectories may have no finite
        value
    values : the soft values of the reward, if known; not with goals
    """
    check_trajectories(mdp, trajectories)
    out = np.zeros(len(trajectories))
    for which, log_policy in log_policies(mdp, reward, trajectories, start, values):
        out[which] = sum_of_steps(mdp, log_policy, trajectories[which])
    return out


def finite_log_likelihood(mdp: MDP, logs: Callable[[Trajectories], Floats], trajectories: Trajectories) -> Floats:
    """Return `logs`, (n,), of the trajectories for which the model has a finite value, and −∞ for the rest.

    With discount 1 a model fitted in some parts of the state space may have no value in others. Trajectories are
    evaluated part by part and, where a part has no value, start by start.
    """
    try:
        return logs(trajectories)
    except NoFiniteValue:
        for label in (state_components(mdp)[trajectories.first], trajectories.first):
            groups = np.unique(label, return_inverse=True)[1]
            if groups.max() > 0:
                out = np.empty(len(trajectories))
                for k in range(groups.max() + 1):
                    out[groups == k] = finite_log_likelihood(mdp, logs, trajectories[groups == k])
                return out
        return np.full(len(trajectories), -np.inf)


def state_components(mdp: MDP) -> Ints:
    """Return the connected component of each state, (S,): no transition leads from one to another."""

    def build() -> Ints:
        matrix = chain_matrix(mdp, mdp.allowed.astype(np.float64))
        return np.asarray(connected_components(matrix, directed=False)[1], dtype=np.int64)

    return mdp.memo("parts", build)


def log_policies(
    mdp: MDP, reward: Floats, trajectories: Trajectories, start: Floats, values: Floats | None = None
) -> Iterator[tuple[Ints, Floats]]:
    """Yield, goal by goal, the trajectories that have it and log π towards it, valid in the states they visit."""
    goals = trajectories.goals
    if goals is None:
        known = solution_from_start(mdp, reward, start).values if values is None else values
        visited = trajectories.states
        if mdp.horizon is None and not np.isfinite(known[visited]).all():  # perhaps only unreachable from the start
            known = solution_from_start(
                mdp, reward, np.bincount(visited, minlength=mdp.n_states).astype(np.float64)
            ).values
        yield np.arange(len(trajectories)), _log_policy(mdp, reward, known, None)
        return
    towards = np.repeat(goals, trajectories.lengths)
    for goal, found in values_by_goal(mdp, reward, trajectories.states, towards):
        yield np.flatnonzero(goals == goal), _log_policy(mdp, reward, found, goal)


def _log_policy(mdp: MDP, reward: Floats, values: Floats, goal: int | None) -> Floats:
    """Return Q − V: (H − 1, S, A), or (S, A); −inf where an action is never taken."""
    here, q = values[None] if mdp.horizon is None else values[:-1], action_values(mdp, reward, values)
    if mdp.log_reference is not None:
        q = q + mdp.log_reference
    taken = mdp.allowed & ~ends_of(mdp, goal)[:, None] & np.isfinite(q)
    with np.errstate(invalid="ignore"):
        return np.where(taken, q - here[..., None], -np.inf).reshape(mdp.policy_shape)


def action_values(mdp: MDP, reward: Floats, values: Floats) -> Floats:
    """Return Q = r + γ Σ_s' p(s'|s,a) V(s') for V (H, S), or (S,) without a horizon: (H − 1, S, A), or (1, S, A)."""
    ahead = values[None] if mdp.horizon is None else values[1:]
    q = mdp.discount * (mdp.transitions @ ahead.T).T.reshape(-1, mdp.n_states, mdp.n_actions)
    return np.asarray(q + (reward[:, None] if reward.ndim == 1 else reward))


def sum_of_steps(mdp: MDP, log_policy: Floats, trajectories: Trajectories) -> Floats:
    """Return the log-probability of each trajectory, (n,), for log π (S, A), or (H − 1, S, A)."""
    owner = np.repeat(np.arange(len(trajectories)), trajectories.lengths - 1)
    return np.bincount(owner, step_logs(mdp, log_policy, trajectories), len(trajectories)).astype(np.float64)


def step_logs(mdp: MDP, log_policy: Floats, trajectories: Trajectories) -> Floats:
    """Return the log-probability of every step of every trajectory, concatenated."""
    left = np.flatnonzero(trajectories.leaves)
    states, entered = trajectories.states[left], trajectories.states[left + 1]
    where = mdp.at(trajectories.step[left], states)
    if trajectories.actions is not None:
        return np.asarray(log_policy[(*where, trajectories.actions)])
    with np.errstate(divide="ignore"):
        return np.asarray(logsumexp(log_policy[where] + np.log(transition_probabilities(mdp, states, entered)), axis=1))


def transition_probability(mdp: MDP, rows: Floats, states: Ints, entered: Ints) -> Floats:
    """Return Σ_a π(a|s) p(s'|s,a) of every step; rows (N, A) are the policies in the states where the steps start."""
    return np.asarray((rows * transition_probabilities(mdp, states, entered)).sum(axis=1))
