"""Algorithm 1 of the paper: a fixed number of fixed steps; where θ leaves the box it is rescaled onto it."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from messirl._types import Floats
from messirl.optim.box_search import ASKED, Asking, Callback, Climb, Function, Result, answered, finite_point


def paper(function: Function, theta: Floats, **options: Any) -> Result:
    """Run Alg. 1 with the update of Eq. 7 corrected; options are those of `fixed_steps`."""
    return answered(function, fixed_steps(theta, **options))


def fixed_steps(
    theta: Floats,
    *,
    bound: float,
    max_iter: int,
    step_size: float,
    tol: float,
    unit: Floats | None = None,
    callback: Callback | None = None,
) -> Asking[Result]:
    """Run Alg. 1, with the update of Eq. 7 corrected: θ ← θ + step · ∇J(θ), then θ ← θ · θ_max/‖θ‖∞ if ‖θ‖∞ > θ_max.

    `tol` and `unit` only decide whether the weights have converged, judged by the curvature along the steps.
    """
    begin = rescaled(theta, bound)
    climb = Climb(begin, bound, tol, unit, None, callback, rising=False)
    yield from climb.begin(begin)
    been = deque([(climb.theta, climb.point.gradient)], maxlen=climb.secants.capacity + 1)
    while climb.iteration < max_iter and not climb.stopped:
        ahead = rescaled(climb.theta + step_size * climb.point.gradient, bound)
        when = f"after {climb.iteration + 1} steps of size {step_size:g}"
        there = finite_point(
            (yield from climb.at(ahead)), when, "take smaller steps, or use solver='lbfgs', which backs off"
        )
        climb.arrive(ahead, there)
        been.append((ahead, there.gradient))
    climb.learn(been)
    gradient = climb.gradient(climb.free)
    move = climb.move(climb.secants.solve(gradient, climb.free))
    converged = bool(move.max(initial=0.0) <= tol) and (climb.secants.n > 0 or not gradient.any())
    reason = ASKED if climb.stopped else f"all {max_iter} fixed steps were taken"
    return climb.result(move, reason, converged=converged)


def rescaled(theta: Floats, bound: float) -> Floats:
    """Return θ projected as in Alg. 1, step 4."""
    size = float(np.abs(theta).max(initial=0.0))
    return theta * (bound / size) if size > bound else theta
