"""Log-probability of trajectories under a policy, the start excluded.

with actions:  Σ_t log π_t(a_t|s_t)          without:  Σ_t log Σ_a π_t(a|s_t) p(s_{t+1}|s_t, a)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from messirl.problem.counts import check_trajectories
from messirl.problem.mdp import MDP, Floats
from messirl.problem.trajectories import Ints, Trajectories


def log_likelihood(mdp: MDP, policy: npt.ArrayLike | Mapping[int, Floats], trajectories: Trajectories) -> Floats:
    """log-probability of each trajectory, (n,); with goals, `policy` maps a goal to its policy."""
    check_trajectories(mdp, trajectories)
    if trajectories.goals is None:
        if isinstance(policy, Mapping):
            raise ValueError("this policy needs goals, and the trajectories have none")
        return _log_likelihood(mdp, np.asarray(policy, dtype=np.float64), trajectories)
    if not isinstance(policy, Mapping):
        raise ValueError("the trajectories have goals: give a mapping from goal to policy")
    out = np.empty(len(trajectories))
    for goal in np.unique(trajectories.goals):
        which = np.flatnonzero(trajectories.goals == goal)
        out[which] = _log_likelihood(mdp, policy[int(goal)], trajectories[which])
    return out


def _log_likelihood(mdp: MDP, policy: Floats, trajectories: Trajectories) -> Floats:
    left = np.flatnonzero(trajectories.leaves)
    states, entered = trajectories.states[left], trajectories.states[left + 1]
    where: tuple[Any, ...] = (states,) if mdp.horizon is None else (trajectories.step[left], states)
    if trajectories.actions is not None:
        share = policy[(*where, trajectories.actions)]
    else:
        share = move_probability(mdp, policy[where], states, entered)
    with np.errstate(divide="ignore"):
        steps = np.log(share)
    trip = np.repeat(np.arange(len(trajectories)), trajectories.lengths - 1)
    return np.bincount(trip, steps, len(trajectories)).astype(np.float64)


def move_probability(mdp: MDP, rows: Floats, states: Ints, entered: Ints) -> Floats:
    """Σ_a π(a|s) p(s'|s,a) of every step; rows (N, A) are the policies where the steps start."""
    total = np.zeros(states.size)
    keys = mdp.memo("entry keys", lambda: _entry_keys(mdp))
    data = mdp.transitions.data
    for a in range(mdp.n_actions):
        wanted = (states * mdp.n_actions + a) * mdp.n_states + entered
        at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1) if keys.size else np.zeros(0, dtype=np.int64)
        hit = keys[at] == wanted
        total[hit] += rows[hit, a] * data[at[hit]]
    return total


def _entry_keys(mdp: MDP) -> Ints:
    """row·S + column of every stored probability; sorted, since the matrix is."""
    rows = np.repeat(np.arange(mdp.transitions.shape[0], dtype=np.int64), np.diff(mdp.transitions.indptr))
    return np.asarray(rows * mdp.n_states + mdp.transitions.indices)
