"""No horizon, causal entropy: one policy for all time, by Newton's method on the soft Bellman equation.

    F(V) = T V − V = 0,     (I − γ P_π) δ = F(V),     V ← V + δ

which is soft policy iteration: δ takes V to the value of the policy π = exp(Q − V). With γ < 1 the linear systems are
solved by BiCGSTAB on the kernels' own layout; with γ = 1 (ends are reached, but perhaps late), or where that fails, by
a sparse factorisation. The expected visits solve the transposed system.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from messirl._types import Flags, Floats
from messirl.planning.kernels import bicgstab, hard_sweep, merge, reached, soft_sweep
from messirl.planning.layout import Layout, layout_of
from messirl.planning.structure import Structure
from messirl.planning.terms import NoFiniteValue, Terms, Visits, terms_of
from messirl.problem.mdp import MDP

MAX_NEWTON = 200
MAX_KRYLOV = 2000
MAX_SWEEPS = 100_000
PASSES = 6
UNSCALED: Floats = np.zeros(0)
LARGEST = 1e250
EPS = float(np.finfo(np.float64).eps)
TRUSTED = 1e-6  # relative error of a value above which it is not called finite (γ = 1)
OVERFLOW = "the values are too large to be computed with: use smaller rewards"
NO_VALUE = (
    "no finite value: with discount=1 a trajectory that goes on and on is worth infinitely much under this reward; "
    "make rewards of steps negative enough, or use a discount below 1 or a horizon"
)


def solve_stationary(mdp: MDP, reward: Floats, frame: Structure, warm: Floats | None = None) -> tuple[Floats, Floats]:
    """Soft values (S,) and the stored policy (A, S padded); `warm` are values to start from."""
    layout = layout_of(mdp)
    terms = terms_of(layout, reward, frame.live)
    fixed = ~frame.alive | frame.ends
    still = np.concatenate([fixed, np.ones(layout.padded - mdp.n_states, dtype=bool)])
    ends = layout.pad(np.where(frame.ends, terms.end, 0.0))

    policy = np.empty((mdp.n_actions, layout.padded))
    ahead = np.empty(layout.padded)
    weights = np.empty_like(layout.idx, dtype=np.float64)
    values = layout.pad(np.where(frame.alive, warm, 0.0)) if warm is not None else np.zeros(layout.padded)
    values[still] = ends[still]
    if warm is None and mdp.discount == 1.0:
        values += _uniform_gain(mdp, layout, terms, frame, values, entropy=True)

    before, rises = np.inf, 0
    for _ in range(MAX_NEWTON):
        soft_sweep(*layout.dynamics, terms.state, terms.action, mdp.discount, values, ahead, policy)
        policy[:, still] = 0.0
        gap = np.where(still, 0.0, ahead - values)
        residual, size = float(np.abs(gap).max()), 1.0 + float(np.abs(values).max())
        if not np.isfinite(residual) or size > LARGEST:
            raise NoFiniteValue(NO_VALUE if mdp.discount == 1.0 else OVERFLOW)
        merge(*layout.dynamics, policy, weights)
        rounding = 8.0 * EPS * size
        if residual <= rounding or (residual <= 1e3 * rounding and residual >= 0.5 * before):
            break
        rises += residual > before
        before = residual
        # Inexact Newton: solve each system only as well as the next step can use. Where the policy turns over again and
        # again, that may lead back to where it came from; solved in full, each step leads closer.
        wanted = residual * min(1e-2, residual / size) if rises < 2 else 0.0
        values += _solve(mdp, layout, weights, gap, tolerance=max(rounding / 2, wanted))
    else:
        raise NoFiniteValue(NO_VALUE if mdp.discount == 1.0 else OVERFLOW)
    if mdp.discount == 1.0:
        duration = _solve(mdp, layout, weights, (~still).astype(np.float64), tolerance=0.0)
        if not (residual + EPS * size) * float(np.abs(duration).max()) <= TRUSTED * size:
            raise NoFiniteValue(NO_VALUE)
    return np.where(frame.alive, values[: mdp.n_states], -np.inf), policy


def _uniform_gain(mdp: MDP, layout: Layout, terms: Terms, frame: Structure, ends: Floats, *, entropy: bool) -> Floats:
    """What the policy that takes every live action alike gains before it ends, on top of `ends`: a value from below."""
    policy = layout.action_major(frame.live / np.maximum(frame.live.sum(axis=1, keepdims=True), 1))
    weights = np.empty_like(layout.idx, dtype=np.float64)
    merge(*layout.dynamics, policy, weights)
    taken = policy > 0
    gain = np.where(taken.any(axis=0), terms.state, 0.0)
    if terms.action.size:
        gain += (policy * np.where(taken, terms.action, 0.0)).sum(axis=0)
    if entropy:
        gain -= (policy * np.log(np.where(taken, policy, 1.0))).sum(axis=0)
    gain[: mdp.n_states] += layout.matrix(weights) @ ends[: mdp.n_states]
    return _solve(mdp, layout, weights, gain, tolerance=0.0)


def solve_stationary_hard(mdp: MDP, reward: Floats, frame: Structure) -> tuple[Floats, Floats]:
    """Hard-max values and the stored one-hot policy: policy iteration, or with γ = 1 sweeps from below."""
    layout = layout_of(mdp)
    terms = terms_of(layout, reward, frame.live)
    still = np.concatenate([~frame.alive | frame.ends, np.ones(layout.padded - mdp.n_states, dtype=bool)])
    values, ahead = layout.pad(np.where(frame.ends, terms.end, 0.0)), np.empty(layout.padded)
    choice = np.empty(layout.padded, dtype=np.int64)
    weights = np.empty_like(layout.idx, dtype=np.float64)
    undiscounted = mdp.discount == 1.0
    if undiscounted:
        values += _uniform_gain(mdp, layout, terms, frame, values, entropy=False)
    before = np.inf
    for _ in range(MAX_SWEEPS if undiscounted else MAX_NEWTON):
        hard_sweep(*layout.dynamics, terms.state, terms.action, mdp.discount, values, ahead, choice)
        gap = np.where(still, 0.0, ahead - values)
        residual, size = float(np.abs(gap).max()), 1.0 + float(np.abs(values).max())
        if not np.isfinite(residual) or size > LARGEST:
            break
        if residual <= 8.0 * EPS * size or (residual <= 1e4 * EPS * size and residual >= before):
            policy = _one_hot(layout, choice, still)
            return np.where(frame.alive, values[: mdp.n_states], -np.inf), policy
        before = residual
        if undiscounted:
            values += gap
        else:
            merge(*layout.dynamics, _one_hot(layout, choice, still), weights)
            values += _solve(mdp, layout, weights, gap, tolerance=4.0 * EPS * size)
    raise NoFiniteValue(NO_VALUE if undiscounted else OVERFLOW)


def _one_hot(layout: Layout, choice: Any, still: Any) -> Floats:
    policy = np.zeros((layout.n_actions, layout.padded))
    policy[choice, np.arange(layout.padded)] = 1.0
    policy[:, still] = 0.0
    return policy


def visit_stationary(
    mdp: MDP, policy: Floats, start: Floats, moving: Any, *, steps: bool, guess: Floats | None = None
) -> Visits:
    """Expected discounted visits D = start + γ P_πᵀ D under a stored policy; `moving` (S,) are the states it leaves.

    Exactly zero where the policy cannot get to. `guess` are visits that an earlier call gave for the same start.
    """
    layout = layout_of(mdp)
    policy = policy * layout.pad(moving)
    states = _visits(mdp, layout, _chain(layout, policy), start, guess)
    return Visits(states, (policy[:, : mdp.n_states] * states).T if steps else None)


def met_stationary(mdp: MDP, policy: Floats, start: Floats, moving: Any) -> Flags:
    """Which states a stored policy can get to, (S,)."""
    layout = layout_of(mdp)
    chain = _chain(layout, policy * layout.pad(moving))
    return np.asarray(reached(layout.off, layout.idx, chain, layout.pad(start))[: mdp.n_states])


def _chain(layout: Layout, policy: Floats) -> Floats:
    weights = np.empty_like(layout.idx, dtype=np.float64)
    merge(*layout.dynamics, policy, weights)
    return weights


def _solve(mdp: MDP, layout: Layout, weights: Floats, b: Floats, *, tolerance: float) -> Floats:
    """x with (I − γ P) x = b, to a residual of `tolerance` or of rounding."""
    if mdp.discount < 1.0:
        x = np.zeros(layout.padded)
        system = (layout.off, layout.idx, weights, mdp.discount, UNSCALED, b, x)
        before = float(np.abs(b).max())
        for _ in range(PASSES):  # each pass starts from the true residual: rounding does not build up
            bicgstab(*system, max(tolerance, 1e-10 * before), MAX_KRYLOV)
            residual = bicgstab(*system, np.inf, 0)
            if residual <= max(tolerance, 64.0 * EPS * float(np.abs(x).max())):
                return x
            if not residual < 0.5 * before:
                break
            before = residual
    return layout.pad(_factorised(layout.matrix(weights), mdp.discount).solve(b[: mdp.n_states]))


def _visits(mdp: MDP, layout: Layout, weights: Floats, start: Floats, guess: Floats | None) -> Floats:
    """D with (I − γ Pᵀ) D = start.

    Solved for y = D/m with m close to D: m⁻¹ Pᵀ m is the chain run backwards, whose rows sum to about one again,
    and BiCGSTAB, which fails on Pᵀ itself, is as quick as for the values. Begun at zero where nothing gets to, it stays
    there.
    """
    b = layout.pad(start)
    if mdp.discount < 1.0:
        mean = 1.0 / ((1.0 - mdp.discount) * mdp.n_states)
        visits = layout.pad(guess) if guess is not None else mean * reached(layout.off, layout.idx, weights, b)
        for _ in range(PASSES):
            scale = visits + 1e-3 * mean
            y, system = visits / scale, (layout.off, layout.idx, weights, mdp.discount, scale, b / scale)
            bicgstab(*system, y, 1e-14, MAX_KRYLOV)
            residual = bicgstab(*system, y, np.inf, 0)
            visits = np.maximum(scale * y, 0.0)
            if residual <= 1e-13:
                return visits[: mdp.n_states]
            if not np.isfinite(residual):
                break
    system = _factorised(layout.matrix(weights), mdp.discount)
    met = reached(layout.off, layout.idx, weights, b)[: mdp.n_states]
    return np.where(met, np.maximum(system.solve(start, trans="T"), 0.0), 0.0)


def _factorised(matrix: sp.csr_array, gamma: float) -> Any:
    try:
        return splu(sp.csc_array(sp.eye_array(matrix.shape[0]) - gamma * matrix))
    except RuntimeError as error:  # exactly singular
        raise NoFiniteValue(NO_VALUE) from error
