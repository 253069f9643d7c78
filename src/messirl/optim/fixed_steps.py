"""Algorithm 1 of the paper: a fixed number of fixed steps; where θ leaves the box it is rescaled onto it."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from messirl._types import Floats
from messirl.optim.box_search import (
    STOPPED_BY_CALLBACK,
    BoxSearch,
    Callback,
    Function,
    Result,
    SearchSteps,
    finite_point,
    run_with_function,
)


def paper(function: Function, theta: Floats, **options: Any) -> Result:
    """Run Alg. 1 with the update of Eq. 7 corrected; options are those of `fixed_steps`."""
    return run_with_function(function, fixed_steps(theta, **options))


def fixed_steps(
    theta: Floats,
    *,
    bound: float,
    max_iter: int,
    step_size: float,
    tol: float,
    unit: Floats | None = None,
    callback: Callback | None = None,
) -> SearchSteps[Result]:
    """Run Alg. 1, with the update of Eq. 7 corrected: θ ← θ + step · ∇J(θ), then θ ← θ · θ_max/‖θ‖∞ if ‖θ‖∞ > θ_max.

    `tol` and `unit` only decide whether the weights have converged, judged by the curvature along the steps.
    """
    begin = rescaled(theta, bound)
    search = BoxSearch(begin, bound, tol, unit, None, callback, monotone=False)
    yield from search.begin(begin)
    been = deque([(search.theta, search.point.gradient)], maxlen=search.secants.capacity + 1)
    while search.iteration < max_iter and not search.stopped:
        ahead = rescaled(search.theta + step_size * search.point.gradient, bound)
        when = f"after {search.iteration + 1} steps of size {step_size:g}"
        there = finite_point(
            (yield from search.at(ahead)), when, "take smaller steps, or use solver='lbfgs', which backs off"
        )
        search.arrive(ahead, there)
        been.append((ahead, there.gradient))
    search.set_curvature_memory(been)
    gradient = search.gradient(search.free)
    move = search.move(search.secants.solve(gradient, search.free))
    converged = bool(move.max(initial=0.0) <= tol) and (search.secants.n > 0 or not gradient.any())
    reason = STOPPED_BY_CALLBACK if search.stopped else f"all {max_iter} fixed steps were taken"
    return search.result(move, reason, converged=converged)


def rescaled(theta: Floats, bound: float) -> Floats:
    """Return θ projected as in Alg. 1, step 4."""
    size = float(np.abs(theta).max(initial=0.0))
    return theta * (bound / size) if size > bound else theta
