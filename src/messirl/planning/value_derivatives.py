"""Gradient and Hessian of the soft values with respect to θ: ∇V and ∇²V of the causal model, exactly.

With F = ∇V, the expected counts of the soft policy from each state,

    F(s) = Σ_a π(a|s) (f(s,a) + γ Σ_s' p(s'|s,a) F(s')),     A_f(s,a) = f(s,a) + γ Σ_s' p F(s') − F(s),
    ∇² Σ_s start(s) V(s) = Σ_{s,a} D(s) π(a|s) A_f(s,a) A_f(s,a)ᵀ,

where D are the discounted visits from the start, or from any other source: the Hessian is the covariance of what the
model's own choices collect.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from messirl._blas import few_threads
from messirl._types import Flags, Floats
from messirl.data.feature_scale import feature_spread
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.planning.planner import solution_from_start, start_values
from messirl.planning.policy_chain import chain_matrix, choices, collected, factorised, feature_table, gram
from messirl.planning.reachability import ends_of

STEP = 1e-5  # of central differences, relative to the size of θ_j or to its unit, whichever is larger


def value_hessian(mdp: MDP, policy: Floats, source: Floats, factors: Any = None) -> tuple[Floats, Floats]:
    """Return ∇² Σ_s m(s) V(s), (d, d), and F = ∇V at the first step, (S, d), of a soft causal policy without goals.

    source : m, any weights (S,) of initial states or, with a horizon, (H, S) of each step
    factors : factors of the policy's chain, if known, see `stepwise_gradients`
    """
    with few_threads(float(mdp.allowed.size) * mdp.n_features**2):
        if factors is None and mdp.horizon is None:
            factors = factorised(chain_matrix(mdp, policy), mdp.discount)
        rows, taken = feature_table(mdp), _taken(mdp, policy, source, factors)
        hessian = np.zeros((mdp.n_features, mdp.n_features))
        for step, here, ahead in stepwise_gradients(mdp, policy, factors=factors):
            hessian += gram(mdp, rows, ahead, here, taken[step])
    return hessian, here


def stepwise_gradients(
    mdp: MDP, policy: Floats, goal: int | None = None, factors: Any = None
) -> Iterator[tuple[int, Floats, Floats]]:
    """Yield F = ∇V (S, d) of a soft causal policy, from the last step to the first: step, F there, F at the next step.

    Without a horizon there is one step, and the next one has the same F; `factors` are those of its chain, if known.
    """
    rows = feature_table(mdp)
    end = np.zeros((mdp.n_states, mdp.n_features)) if mdp.state_action else rows[:, 0]
    ending = np.where(ends_of(mdp, goal)[:, None], end, 0.0)
    if mdp.horizon is None:
        gained = np.where(_moving(policy), collected(rows, policy), ending)
        known = factorised(chain_matrix(mdp, policy), mdp.discount) if factors is None else factors
        here = known.solve(gained)
        yield 0, here, here
        return
    here = end
    for step in reversed(range(len(policy))):
        table, ahead = policy[step], here
        gained = collected(rows, table) + choices(mdp, table) @ (mdp.discount * (mdp.transitions @ ahead))
        here = np.where(_moving(table), gained, ending)
        yield step, here, ahead


def _taken(mdp: MDP, policy: Floats, source: Any, factors: Any) -> list[Floats]:
    """Return expected discounted visits of (state, action) pairs, (S, A), per step, or in total without a horizon."""
    if mdp.horizon is None:
        visits = factors.solve(np.ascontiguousarray(source), trans="T")
        return [visits[:, None] * policy]
    begin = np.zeros((mdp.horizon, mdp.n_states))
    dense = source.toarray() if sp.issparse(source) else np.atleast_2d(source)
    begin[: len(dense)] = dense
    weight, steps = begin[0], []
    for table, more in zip(policy, begin[1:], strict=True):
        steps.append(weight[:, None] * table)
        weight = more + mdp.discount * (mdp.transitions.T @ steps[-1].ravel())
    return steps


def value_gradients(mdp: MDP, theta: npt.ArrayLike, entropy: str, trajectories: Trajectories) -> Floats:
    """Return ∇_θ V(s_0) of every trajectory (towards its goal, if it has one), (n, d).

    Exact for the causal model without goals, otherwise by central differences of the exact values.
    """
    t = np.asarray(theta, dtype=np.float64)
    if entropy == "causal" and trajectories.goals is None:
        start = np.bincount(trajectories.first, minlength=mdp.n_states) / len(trajectories)
        return value_hessian(mdp, solution_from_start(mdp, mdp.reward(t), start).table, start)[1][trajectories.first]
    return differences(lambda at: start_values(mdp, mdp.reward(at), entropy, trajectories), t, feature_spread(mdp)).T


def differences(function: Any, theta: Floats, unit: Floats) -> Floats:
    """Return the derivatives of a function of θ by central differences, one row per feature; `unit` (d,): spreads."""
    rows = []
    for j, size in enumerate(np.abs(theta)):
        step = STEP * max(1.0 / float(unit[j]), float(size))
        move = np.zeros_like(theta)
        move[j] = step
        rows.append((function(theta + move) - function(theta - move)) / (2.0 * step))
    return np.array(rows)


def _moving(policy: Floats) -> Flags:
    return np.asarray(policy.sum(axis=1, keepdims=True) > 0.5)
