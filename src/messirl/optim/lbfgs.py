"""Maximisation over the box ‖θ‖∞ ≤ θ_max, by projected L-BFGS with Newton steps close to the optimum.

Where the function is −∞ the step is shortened; the value never falls. The search ends when no weight would move by more
than `tol`; otherwise its result gives the reason and the weights that have not converged.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from messirl._types import Floats
from messirl.optim.box_search import (
    ASKED,
    EDGE,
    EDGED,
    FEW,
    NEAR,
    NOISE,
    ROUNDING,
    ROUNDS,
    SETTLED,
    STALE,
    UNSETTLED,
    Asking,
    Bend,
    Callback,
    Climb,
    Function,
    Result,
    answered,
)


def lbfgs(function: Function, theta: Floats, **options: Any) -> Result:
    """Maximise a function over the box; options are those of `seek_maximum`."""
    return answered(function, seek_maximum(theta, **options))


def seek_maximum(
    theta: Floats,
    *,
    bound: float,
    max_iter: int,
    tol: float,
    unit: Floats | None = None,
    scale: Floats | None = None,
    callback: Callback | None = None,
    certain: bool = True,
    curvature: Floats | None = None,
    bend: Bend | None = None,
    patience: tuple[float, float] = (np.inf, np.inf),
) -> Asking[Result]:
    """Maximise over the box, by projected L-BFGS with Newton steps close to the optimum.

    tol : the search has converged when every weight is within `tol` · max(|θ_j|, 1/unit_j) of its optimum
    unit : (d,) the spread of each feature; None: 1 for all
    scale : (d,) the search is over θ · scale, in which the curvature should be about equal in all directions;
        None: `unit`
    certain : whether Newton's method must confirm the maximum; if not, many weights are judged by the secants, which
        suits many rough fits
    curvature : (d, d) an approximation of −∇² at the start, if known
    bend : −∇² at any θ, exactly; used by Newton's method, and where a step contradicts `curvature`
    patience : limits (n, m) on evaluations: the search stops after more than n without a finite value, or after more
        than m in total if any had none
    """
    begin = np.clip(theta, -bound, bound)
    said: dict[str, Any] = {"certain": certain, "curvature": curvature, "bend": bend}
    climb = Climb(begin, bound, tol, unit, scale, callback, rising=True, **said)
    yield from climb.begin(begin)
    expected: list[float] = []  # the largest expected move at each step, since the value began to hardly rise
    rounds = 0
    while True:
        reason = f"max_iter={max_iter} iterations were done"
        # A few secants may share one direction, and Newton's method is cheap here; a given curvature that holds covers
        # all directions.
        certain = certain or (theta.size <= FEW and not climb.secants.told)
        gradient, direction = yield from climb.lead(climb.by_secants)
        move = climb.move(direction)
        if climb.stopped:
            return climb.result(move, ASKED)
        slope, noise = float(np.abs(gradient).sum()), NOISE * (1.0 + abs(climb.point.value))
        if slope == 0.0 or (not climb.secants.known and slope <= noise):  # even a step of one unit would change nothing
            return climb.result(np.zeros_like(move), SETTLED, converged=True)
        largest, gain = float(move.max()), float(gradient @ direction)
        known, near = climb.secants.known, largest <= max(NEAR, tol)
        expected = [*expected, largest] if known and gain <= 1e-3 * tol * (1.0 + abs(climb.point.value)) else []
        stale = len(expected) >= 2 * STALE and min(expected[-STALE:]) > 0.5 * min(expected[:-STALE])
        # A long step measures a mean curvature, not the one at its end, and too large a curvature predicts small moves.
        local = certain or (climb.stride <= NEAR and climb.foreseen)
        if not (stale or (known and local and largest <= 0.5 * tol)):
            if climb.iteration >= max_iter:
                return climb.result(move, reason)
            if climb.edged >= EDGED or climb.tried(*patience):
                return climb.result(move, EDGE)
            if (yield from climb.up(direction, gradient, near=near)):
                continue
            reason = ROUNDING
        elif stale:
            reason = UNSETTLED
        if not certain and largest <= tol:
            return climb.result(move, SETTLED, converged=True)
        if not (known and near):
            return climb.result(move, reason)
        _, step = yield from climb.lead(climb.newton)
        if not np.isfinite(step).all():
            return climb.result(move, EDGE)
        move = climb.move(step)
        if move.max() <= 0.9 * tol:  # the move is known to about a tenth
            return climb.result(move, SETTLED, converged=True)
        if climb.iteration >= max_iter:
            return climb.result(move, reason)
        rounds += 1
        if rounds > ROUNDS:
            return climb.result(move, UNSETTLED)
        if not (yield from climb.along(step)):
            return climb.result(move, ROUNDING)
        expected = []
