"""Maximisation over the box ‖θ‖∞ ≤ θ_max by Newton's method with an exact Hessian and a line search."""

from __future__ import annotations

import numpy as np

from messirl._types import Floats
from messirl.optim.box_search import (
    EDGE,
    MAX_TRIALS,
    ROUNDING,
    SETTLED,
    BoxSearch,
    HessianFunction,
    Result,
    SearchSteps,
)


def seek_by_newton(
    theta: Floats,
    *,
    bound: float,
    max_iter: int,
    tol: float,
    hessian_function: HessianFunction,
    unit: Floats | None = None,
    scale: Floats | None = None,
    trials: int = MAX_TRIALS,
) -> SearchSteps[Result]:
    """Maximise over the box by Newton steps only, each shortened until the value rises.

    tol : the Newton decrement gᵀH⁻¹g, twice the predicted rise of the next step, at which the search ends
    trials : maximum number of step lengths tried per step, the full step included; a failed step ends the search
    """
    search = BoxSearch(
        np.clip(theta, -bound, bound), bound, tol, unit, scale, None, monotone=True, hessian_function=hessian_function
    )
    yield from search.begin(search.theta)
    while True:
        gradient, direction = yield from search.ascent_direction(search.exact_newton_step)
        move = search.move(direction)
        if not np.isfinite(direction).all():
            return search.result(move, EDGE)
        if not gradient @ direction > tol:
            return search.result(move, SETTLED, converged=True)
        if search.iteration >= max_iter:
            return search.result(move, f"max_iter={max_iter} iterations were done")
        if not (yield from search.line_search(direction, trials=trials)):
            return search.result(move, ROUNDING)
