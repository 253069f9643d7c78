"""How values bend with θ: ∇V and ∇²V of the causal model, exactly.

With F = ∇V, the expected counts of the soft policy from each state,

    F(s) = Σ_a π(a|s) (f(s,a) + γ Σ_s' p(s'|s,a) F(s')),     A_f(s,a) = f(s,a) + γ Σ_s' p F(s') − F(s),
    ∇² Σ_s start(s) V(s) = Σ_{s,a} D(s) π(a|s) A_f(s,a) A_f(s,a)ᵀ,

where D are the discounted visits: the curvature is the spread of what the model's own choices collect.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from messirl._types import Flags, Floats
from messirl.planning.expectation import start_values
from messirl.planning.policies import policy_where_met
from messirl.problem.mdp import MDP
from messirl.problem.trajectories import Trajectories
from messirl.problem.units import feature_spread

STEP = 1e-5  # of central differences, relative to the size of θ_j or to its unit, whichever is larger


def curvature(mdp: MDP, policy: Floats, start: Floats) -> tuple[Floats, Floats]:
    """∇² Σ_s start(s) V(s), (d, d), and F = ∇V at the first step, (S, d), of a soft causal policy without goals."""
    rows = mdp.features.toarray() if sp.issparse(mdp.features) else mdp.features
    rows = rows.reshape(mdp.n_states, -1, mdp.n_features)  # (S, 1, d) or (S, A, d)
    end = np.zeros((mdp.n_states, mdp.n_features)) if mdp.state_action else rows[:, 0]
    if mdp.horizon is None:
        chosen = _choice(mdp, policy)
        chain = chosen @ mdp.transitions
        collected = np.where(_moving(policy), _mean(policy, rows), _ending(mdp, end))
        system = splu(sp.csc_array(sp.eye_array(mdp.n_states) - mdp.discount * chain))
        here = system.solve(np.ascontiguousarray(collected))
        visits = system.solve(np.ascontiguousarray(start), trans="T")
        return _gathered(mdp, rows, here, here, visits[:, None] * policy), here

    weight = np.array(start)  # γ^t P(s_t = s)
    steps = []
    for table in policy:
        steps.append(weight[:, None] * table)
        weight = mdp.discount * (mdp.transitions.T @ steps[-1].ravel())
    bend, here = np.zeros((mdp.n_features, mdp.n_features)), end
    for table, taken in zip(policy[::-1], steps[::-1], strict=True):
        ahead = here
        expected = mdp.discount * (mdp.transitions @ ahead)
        collected = _mean(table, rows) + _choice(mdp, table) @ expected
        here = np.where(_moving(table), collected, _ending(mdp, end))
        bend += _gathered(mdp, rows, ahead, here, taken)
    return bend, here


def value_gradients(mdp: MDP, theta: npt.ArrayLike, entropy: str, trajectories: Trajectories) -> Floats:
    """∇_θ V(s_0) of every trajectory (towards its goal, if it has one), (n, d).

    Exact for the causal model without goals; else by central differences of the exact values.
    """
    t = np.asarray(theta, dtype=np.float64)
    if entropy == "causal" and trajectories.goals is None:
        start = np.bincount(trajectories.first, minlength=mdp.n_states) / len(trajectories)
        return curvature(mdp, policy_where_met(mdp, mdp.reward(t), start), start)[1][trajectories.first]
    return differences(lambda at: start_values(mdp, mdp.reward(at), entropy, trajectories), t, feature_spread(mdp)).T


def differences(function: Any, theta: Floats, unit: Floats) -> Floats:
    """The derivatives of a function of θ by central differences, one row per feature; `unit` (d,) is their spread."""
    rows = []
    for j, size in enumerate(np.abs(theta)):
        step = STEP * max(1.0 / float(unit[j]), float(size))
        move = np.zeros_like(theta)
        move[j] = step
        rows.append((function(theta + move) - function(theta - move)) / (2.0 * step))
    return np.array(rows)


def _mean(policy: Floats, rows: Floats) -> Floats:
    """Σ_a π(a|s) f(s, a), (S, d); rows are (S, A, d), or (S, 1, d) with state features."""
    return rows[:, 0] if rows.shape[1] == 1 else np.einsum("sa,sad->sd", policy, rows)


def _moving(policy: Floats) -> Flags:
    return np.asarray(policy.sum(axis=1, keepdims=True) > 0.5)


def _ending(mdp: MDP, end: Floats) -> Floats:
    return np.where(mdp.terminal[:, None], end, 0.0)


def _choice(mdp: MDP, policy: Floats) -> sp.csr_array:
    """π as a matrix (S, S·A)."""
    pointer = np.arange(0, policy.size + 1, mdp.n_actions)
    return sp.csr_array((policy.ravel(), np.arange(policy.size), pointer), shape=(mdp.n_states, policy.size))


def _gathered(mdp: MDP, rows: Floats, ahead: Floats, here: Floats, taken: Floats) -> Floats:
    """Σ_{s,a} taken(s, a) A_f A_fᵀ, action by action: nothing larger than (S, d) is held."""
    moves = mdp.memo(
        "moves of each action", lambda: [mdp.transitions[a :: mdp.n_actions] for a in range(mdp.n_actions)]
    )
    total = np.zeros((mdp.n_features, mdp.n_features))
    for a, move in enumerate(moves):
        gap = rows[:, a if mdp.state_action else 0] + mdp.discount * (move @ ahead) - here
        total += gap.T @ (taken[:, a, None] * gap)
    return total
