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

from messirl._types import Flags, Floats
from messirl.planning.chain import chain_matrix, choices, collected, factorised, feature_table, gram
from messirl.planning.models import start_values, where_met
from messirl.problem.mdp import MDP
from messirl.problem.trajectories import Trajectories
from messirl.problem.units import feature_spread

STEP = 1e-5  # of central differences, relative to the size of θ_j or to its unit, whichever is larger


def curvature(mdp: MDP, policy: Floats, start: Floats) -> tuple[Floats, Floats]:
    """∇² Σ_s start(s) V(s), (d, d), and F = ∇V at the first step, (S, d), of a soft causal policy without goals."""
    rows = feature_table(mdp)
    end = np.zeros((mdp.n_states, mdp.n_features)) if mdp.state_action else rows[:, 0]
    ending = np.where(mdp.terminal[:, None], end, 0.0)
    if mdp.horizon is None:
        gained = np.where(_moving(policy), collected(rows, policy), ending)
        system = factorised(chain_matrix(mdp, policy), mdp.discount)
        here = system.solve(gained)
        visits = system.solve(np.ascontiguousarray(start), trans="T")
        return gram(mdp, rows, here, here, visits[:, None] * policy), here

    weight = np.array(start)  # γ^t P(s_t = s)
    steps = []
    for table in policy:
        steps.append(weight[:, None] * table)
        weight = mdp.discount * (mdp.transitions.T @ steps[-1].ravel())
    bend, here = np.zeros((mdp.n_features, mdp.n_features)), end
    for table, taken in zip(policy[::-1], steps[::-1], strict=True):
        ahead = here
        expected = mdp.discount * (mdp.transitions @ ahead)
        gained = collected(rows, table) + choices(mdp, table) @ expected
        here = np.where(_moving(table), gained, ending)
        bend += gram(mdp, rows, ahead, here, taken)
    return bend, here


def value_gradients(mdp: MDP, theta: npt.ArrayLike, entropy: str, trajectories: Trajectories) -> Floats:
    """∇_θ V(s_0) of every trajectory (towards its goal, if it has one), (n, d).

    Exact for the causal model without goals; else by central differences of the exact values.
    """
    t = np.asarray(theta, dtype=np.float64)
    if entropy == "causal" and trajectories.goals is None:
        start = np.bincount(trajectories.first, minlength=mdp.n_states) / len(trajectories)
        return curvature(mdp, where_met(mdp, mdp.reward(t), start).table, start)[1][trajectories.first]
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


def _moving(policy: Floats) -> Flags:
    return np.asarray(policy.sum(axis=1, keepdims=True) > 0.5)
