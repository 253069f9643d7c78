"""Gradient and Hessian of the values towards many goals, exactly, from the one factorisation that serves all goals.

See goal_conditioned.py for M and z. Except at the goal, (I − M) ∂z_g = (∂M) z_g and (I − M) z_g = 0. At the goal ∂z/z
is f(g), or zero with state-action features. So with u = (I − M)⁻¹ b, where b is (∂M) z_g without its row g,

    F(s) = ∇V_g(s) = u(s)/z_g(s) − u(g)/z_g(g) + f(g),      A(e) = f(e) + F(s') − F(s) of the transition e from s to s',
    ∇² Σ_s m(s) V_g(s) = Σ_e flow(e) A(e) A(e)ᵀ,

with the expected flows from the source m (compare value_derivatives.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from messirl._types import Flags, Floats
from messirl.planning.goal_conditioned import GoalsSolution, GoalSystem
from messirl.planning.kernels.graph import path_gains, path_spread


class OutOfReach(Exception):
    """Some goal needs a system of its own."""


def goals_hessian(solution: GoalsSolution, source: Any) -> Floats:
    """Return ∇² Σ m V, (d, d), from a source (G, S)."""
    system = _shared(solution)
    own, ending = _features(solution)
    hessian = np.zeros((own.shape[1], own.shape[1]))
    for goals, sources in solution.chunks(source):
        found = system.flows(goals, sources)
        _check(system, found.solved)
        for g, goal in enumerate(goals.tolist()):
            slope = _slope(system, own, ending, goal, found.z[g])
            path_spread(*_moves(system), found.y[g], found.z[g], own, slope, hessian)
    _check(system, np.isfinite(hessian))
    return hessian + np.tril(hessian, -1).T


def goals_gradients(solution: GoalsSolution, needed: Any) -> Iterator[Floats]:
    """Yield ∇V (S, d) towards each goal, valid where `needed` (G, S) is not zero."""
    system = _shared(solution)
    own, ending = _features(solution)
    for goals, sources in solution.chunks(needed):
        z, solved = system.values(goals, sources != 0)
        _check(system, solved)
        for g, goal in enumerate(goals.tolist()):
            yield _slope(system, own, ending, goal, z[g])


def _shared(solution: GoalsSolution) -> GoalSystem:
    if solution.system is None or solution.system.iterates:  # factors would fill in
        raise OutOfReach
    return solution.system


def _check(system: GoalSystem, solved: Flags) -> None:
    if system.lu is None or not solved.all():
        raise OutOfReach


def _features(solution: GoalsSolution) -> tuple[Floats, Floats | None]:
    """Return the features of every transition, (E, d), and those of states, (S, d), or None with state-action ones."""
    mdp, moves = solution.model.mdp, solution.model.reachable_transitions[0]
    rows = mdp.feature_rows.toarray() if sp.issparse(mdp.feature_rows) else mdp.feature_rows
    if mdp.state_action:
        return np.ascontiguousarray(rows[moves.source * mdp.n_actions + moves.action]), None
    return np.ascontiguousarray(rows[moves.source]), rows


def _slope(system: GoalSystem, own: Floats, ending: Floats | None, goal: int, z: Floats) -> Floats:
    """Return F (S, d) towards one goal, zero in states that cannot reach it."""
    right = np.zeros((own.shape[1], z.size))
    path_gains(*_moves(system), z, own, right)
    right[:, goal] = 0.0
    u = system.lu.solve(right.T)
    with np.errstate(all="ignore"):
        slope = np.divide(u, z[:, None], out=np.zeros(u.shape), where=z[:, None] > 0.0)
        slope -= slope[goal] if ending is None else slope[goal] - ending[goal]
    slope[z <= 0.0] = 0.0
    return np.ascontiguousarray(slope)


def _moves(system: GoalSystem) -> tuple[Any, Any, Floats]:
    return system.moves.source, system.moves.target, system.gain
