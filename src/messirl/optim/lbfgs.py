"""The maximum over the box ‖θ‖∞ ≤ θ_max, by projected L-BFGS and, close to it, Newton steps.

Where the function is −∞ the step is shortened; the value never falls. The search ends when no weight would move by more
than `tol`, or else says why it ended and which weights have not converged.
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
    """The maximum over the box; options are those of `seek_maximum`."""
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
    """The maximum over the box, by projected L-BFGS and, close to it, Newton steps.

    tol : the maximum counts as found when no weight would move by more than `tol` · max(|θ_j|, 1/unit_j) to reach it
    unit : (d,) the spread of each feature; None: 1 for all
    scale : (d,) the search is over θ · scale, in which the function should bend about equally in all directions;
        None: `unit`
    certain : whether Newton's method confirms the maximum; if not, and the weights are many, the secants are trusted,
        which suits many rough fits
    curvature : (d, d) about how the function bends where the search begins, −∇², where that is known
    bend : the same at any θ, exactly; asked where a step was not what `curvature` said it would be, and by Newton's
        method
    patience : the search is given up after more evaluations than the first of these had no finite value, or after more
        than the second, if any of them had none
    """
    begin = np.clip(theta, -bound, bound)
    said: dict[str, Any] = {"certain": certain, "curvature": curvature, "bend": bend}
    climb = Climb(begin, bound, tol, unit, scale, callback, rising=True, **said)
    yield from climb.begin(begin)
    expected: list[float] = []  # the largest move at each step since the value hardly rises
    rounds = 0
    while True:
        reason = f"max_iter={max_iter} iterations were done"
        # Few secants may all have gone one way, and Newton's method is cheap; a curvature that holds leaves no way out.
        certain = certain or (theta.size <= FEW and not climb.secants.told)
        gradient, direction = yield from climb.lead(climb.by_secants)
        move = climb.move(direction)
        if climb.stopped:
            return climb.result(move, ASKED)
        slope, noise = float(np.abs(gradient).sum()), NOISE * (1.0 + abs(climb.point.value))
        if slope == 0.0 or (not climb.secants.known and slope <= noise):  # moves of a whole unit would change nothing
            return climb.result(np.zeros_like(move), SETTLED, converged=True)
        largest, gain = float(move.max()), float(gradient @ direction)
        known, near = climb.secants.known, largest <= max(NEAR, tol)
        expected = [*expected, largest] if known and gain <= 1e-3 * tol * (1.0 + abs(climb.point.value)) else []
        stale = len(expected) >= 2 * STALE and min(expected[-STALE:]) > 0.5 * min(expected[:-STALE])
        # A long step sees a mean curvature, not the one where it ends, and a curvature too large foresees small moves.
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
