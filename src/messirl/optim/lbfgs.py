"""Maximisation over the box ‖θ‖∞ ≤ θ_max, by projected L-BFGS with Newton steps close to the optimum.

Where the function is −∞ the step is shortened; the value never falls. The search ends when no weight would move by more
than `tol`; otherwise its result gives the reason and the weights that have not converged.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from messirl._types import Floats
from messirl.optim.box_search import (
    EDGE,
    EDGED,
    FEW,
    NEAR,
    NOISE,
    ROUNDING,
    ROUNDS,
    SETTLED,
    STALE,
    STOPPED_BY_CALLBACK,
    UNSETTLED,
    BoxSearch,
    Callback,
    Function,
    HessianFunction,
    Result,
    SearchSteps,
    run_with_function,
)


def lbfgs(function: Function, theta: Floats, **options: Any) -> Result:
    """Maximise a function over the box; options are those of `seek_maximum`."""
    return run_with_function(function, seek_maximum(theta, **options))


def seek_maximum(
    theta: Floats,
    *,
    bound: float,
    max_iter: int,
    tol: float,
    unit: Floats | None = None,
    scale: Floats | None = None,
    callback: Callback | None = None,
    confirm_by_newton: bool = True,
    curvature: Floats | None = None,
    hessian_function: HessianFunction | None = None,
    patience: tuple[float, float] = (np.inf, np.inf),
) -> SearchSteps[Result]:
    """Maximise over the box, by projected L-BFGS with Newton steps close to the optimum.

    tol : the search has converged when every weight is within `tol` · max(|θ_j|, 1/unit_j) of its optimum
    unit : (d,) the spread of each feature; None: 1 for all
    scale : (d,) the search is over θ · scale, in which the curvature should be about equal in all directions;
        None: `unit`
    confirm_by_newton : whether Newton's method must confirm the maximum; if not, many weights are judged by the
    secants, which
        suits many rough fits
    curvature : (d, d) an approximation of −∇² at the start, if known
    hessian_function : −∇² at any θ, exactly; used by Newton's method, and where a step contradicts `curvature`
    patience : limits (n, m) on evaluations: the search stops after more than n without a finite value, or after more
        than m in total if any had none
    """
    begin = np.clip(theta, -bound, bound)
    said: dict[str, Any] = {
        "confirm_by_newton": confirm_by_newton,
        "curvature": curvature,
        "hessian_function": hessian_function,
    }
    search = BoxSearch(begin, bound, tol, unit, scale, callback, monotone=True, **said)
    yield from search.begin(begin)
    expected: list[float] = []  # the largest expected move at each step, since the value began to hardly rise
    rounds = 0
    while True:
        reason = f"max_iter={max_iter} iterations were done"
        # A few secants may share one direction, and Newton's method is cheap here; a given curvature that holds covers
        # all directions.
        confirm_by_newton = confirm_by_newton or (theta.size <= FEW and not search.secants.uses_given_curvature)
        gradient, direction = yield from search.ascent_direction(search.lbfgs_step)
        move = search.move(direction)
        if search.stopped:
            return search.result(move, STOPPED_BY_CALLBACK)
        slope, noise = float(np.abs(gradient).sum()), NOISE * (1.0 + abs(search.point.value))
        if slope == 0.0 or (
            not search.secants.known and slope <= noise
        ):  # even a step of one unit would change nothing
            return search.result(np.zeros_like(move), SETTLED, converged=True)
        largest, gain = float(move.max()), float(gradient @ direction)
        known, near = search.secants.known, largest <= max(NEAR, tol)
        expected = [*expected, largest] if known and gain <= 1e-3 * tol * (1.0 + abs(search.point.value)) else []
        stale = len(expected) >= 2 * STALE and min(expected[-STALE:]) > 0.5 * min(expected[:-STALE])
        # A long step measures a mean curvature, not the one at its end, and too large a curvature predicts small moves.
        local = confirm_by_newton or (search.stride <= NEAR and search.step_was_predicted)
        if not (stale or (known and local and largest <= 0.5 * tol)):
            if search.iteration >= max_iter:
                return search.result(move, reason)
            if search.edged >= EDGED or search.has_failed(*patience):
                return search.result(move, EDGE)
            if (yield from search.ascend(direction, gradient, near=near)):
                continue
            reason = ROUNDING
        elif stale:
            reason = UNSETTLED
        if not confirm_by_newton and largest <= tol:
            return search.result(move, SETTLED, converged=True)
        if not (known and near):
            return search.result(move, reason)
        _, step = yield from search.ascent_direction(search.newton_step)
        if not np.isfinite(step).all():
            return search.result(move, EDGE)
        move = search.move(step)
        if move.max() <= 0.9 * tol:  # the move is known to about a tenth
            return search.result(move, SETTLED, converged=True)
        if search.iteration >= max_iter:
            return search.result(move, reason)
        rounds += 1
        if rounds > ROUNDS:
            return search.result(move, UNSETTLED)
        if not (yield from search.line_search(step)):
            return search.result(move, ROUNDING)
        expected = []
