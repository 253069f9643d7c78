"""Linear support vector machine without offset, by an interior-point method on its dual.

    min_w  ½‖w‖² + Σ_i c_i max(0, 1 − y_i wᵀx_i)         w = Σ_i α_i y_i x_i = Zᵀα
    min_α  ½‖Zᵀα‖² − Σ_i α_i,    0 ≤ α ≤ c                the rows of Z are y_i x_i

The multipliers s of α ≥ 0 and t of α ≤ c satisfy complementarity, s α → 0 and t (c − α) → 0, along the central path.
Each Newton step solves a system with as many unknowns as there are features: a few hundred points take milliseconds.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lstsq

from messirl._types import Floats

MAX_STEPS = 60
GAP = 1e-9  # tolerance of the duality gap, relative to the objective
SHORT = 0.99  # fraction of the way to the boundary that a step takes


def support_vector_machine(points: Floats, signs: Floats, costs: Floats) -> Floats:
    """Fit w (d,) to points (n, d) with labels ±1 (n,) and costs c > 0 (n,) per unit of margin violation."""
    z = signs[:, None] * points
    alpha, room = 0.5 * costs, 0.5 * costs
    w: Floats = z.T @ alpha
    slope = z @ w - 1.0  # of the dual: s − t, from the first step on
    away = 1.0 + float(np.abs(slope).mean())
    s, t = np.maximum(slope, 0.0) + away, np.maximum(-slope, 0.0) + away
    identity, nothing = np.eye(z.shape[1]), np.zeros(z.shape[1])
    best, lowest = w, np.inf
    for _ in range(MAX_STEPS):
        short = 1.0 - z @ w
        primal = 0.5 * float(w @ w) + float(costs @ np.maximum(short, 0.0))
        if primal < lowest:
            best, lowest = w, primal
        if primal - (float(alpha.sum()) - 0.5 * float(w @ w)) <= GAP * (1.0 + primal):
            break
        mu = 0.1 * float(s @ alpha + t @ room) / (2 * len(z))
        d = s / alpha + t / room
        right = short + mu / alpha - mu / room
        root = np.sqrt(d)
        stacked = np.vstack([z / root[:, None], identity])
        turn, *_ = lstsq(stacked, np.append(right / root, nothing), lapack_driver="gelsy", check_finite=False)
        step = (right - z @ turn) / d
        ds = mu / alpha - s - s / alpha * step
        dt = mu / room - t + t / room * step
        far = min(1.0, *(SHORT * _reach(x, dx) for x, dx in ((alpha, step), (room, -step), (s, ds), (t, dt))))
        alpha, room, s, t = alpha + far * step, room - far * step, s + far * ds, t + far * dt
        w = z.T @ alpha
    return best


def _reach(values: Floats, change: Floats) -> float:
    """Return the largest multiple of a change (n,) that keeps positive values (n,) nonnegative."""
    falling = change < 0.0
    return float((-values[falling] / change[falling]).min()) if falling.any() else np.inf
