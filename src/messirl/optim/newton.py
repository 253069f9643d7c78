"""Maximisation over the box ‖θ‖∞ ≤ θ_max by Newton's method with an exact Hessian and a line search."""

from __future__ import annotations

import numpy as np

from messirl._types import Floats
from messirl.optim.box_search import EDGE, MAX_TRIALS, ROUNDING, SETTLED, Asking, Bend, Climb, Result


def seek_by_newton(
    theta: Floats,
    *,
    bound: float,
    max_iter: int,
    tol: float,
    bend: Bend,
    unit: Floats | None = None,
    scale: Floats | None = None,
    trials: int = MAX_TRIALS,
) -> Asking[Result]:
    """Maximise over the box by Newton steps only, each shortened until the value rises.

    tol : the Newton decrement gᵀH⁻¹g, twice the predicted rise of the next step, at which the search ends
    trials : maximum number of step lengths tried per step, the full step included; a failed step ends the search
    """
    climb = Climb(np.clip(theta, -bound, bound), bound, tol, unit, scale, None, rising=True, bend=bend)
    yield from climb.begin(climb.theta)
    while True:
        gradient, direction = yield from climb.lead(climb.exact_newton)
        move = climb.move(direction)
        if not np.isfinite(direction).all():
            return climb.result(move, EDGE)
        if not gradient @ direction > tol:
            return climb.result(move, SETTLED, converged=True)
        if climb.iteration >= max_iter:
            return climb.result(move, f"max_iter={max_iter} iterations were done")
        if not (yield from climb.along(direction, trials=trials)):
            return climb.result(move, ROUNDING)
