"""Maximisation of J where values are finite only for some θ (the feasible set): discount 1 and no horizon.

J may hardly fall before the edge of that set: as the spectral radius of a rarely visited cycle nears 1, J stays almost
level until it is −∞, and a search that climbs J alone stops there. Such a search is abandoned, and the central path

    θ(w) = argmax J(θ) − w B(θ),     w → 0

is followed by Newton's method. The barrier B (see `Barrier`) is the negative mean log-likelihood of trajectories that
start in every state and follow the policy of the initial θ. So θ(∞) is that θ, and every state keeps a finite value.

Reference: Boyd and Vandenberghe, Convex Optimization, chapter 11.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from messirl._types import Floats
from messirl.estimators._initialization import PathPoint, WarmStart, curvature_at, initial_theta
from messirl.objective import Evaluation, Objective
from messirl.optim.box_search import (
    EDGE,
    STOPPED_BY_CALLBACK,
    Callback,
    Result,
    continue_callback,
    relative_move,
    wants_to_stop,
)
from messirl.optim.lbfgs import seek_maximum
from messirl.optim.lockstep import EvaluationRequest, attach_objective
from messirl.optim.newton import seek_by_newton
from messirl.planning.feasible_theta import feasible_theta

LOG = logging.getLogger(__name__)
# A search follows the path after so many evaluations without a finite value, or after so many in all if any had none:
# by default, for a rough search, which starts near the maximum, and where a point of a similar path is known.
PATIENCE, SHORT, AGAIN = (40, 100), (20, 60), (5, 15)
FIRST_WEIGHT, LAST_WEIGHT = 100.0, 1e-13  # weights of the barrier
SHRINK, GENTLE = 0.1, 0.7  # factor of the weight from one point of the path to the next: initial and largest
LONG = 20  # Newton steps towards a point of the path, after which a nearer one is tried
CLOSE = 3e-3  # Newton decrement, relative to the weight, at which a point of the path is close enough
REACHED = 0.1  # the path ends where a second Newton step on J is at most so long, relative to the first
KEPT = 0.15  # largest weight at which a point of the path is a warm start for similar objectives

LIMITED = "the objective rises up to the edge beyond which the model has no finite value: it has no maximum"


def find_maximum(
    objective: Objective,
    warm_start: WarmStart,
    *,
    max_iter: int,
    callback: Callback | None = None,
    **options: Any,
) -> Generator[EvaluationRequest, Evaluation, Result]:
    """Return the maximum of J over the box, from a start; options are those of `seek_maximum`.

    The central path, if followed, starts from the start's point of it.
    """
    theta, inside = warm_start.theta, warm_start.path_point
    hessian_function = options.pop("hessian_function", None)
    if hessian_function is None and objective.curvature_is_cheap:
        hessian_function = partial(curvature_at, objective, by_differences=False)
    options |= {"unit": objective.unit, "scale": objective.scale, "hessian_function": hessian_function}
    path = objective.mdp.must_end and objective.curvature_is_cheap
    patience = (np.inf, np.inf)
    if path:
        patience = AGAIN if inside is not None else PATIENCE if options.get("confirm_by_newton", True) else SHORT
    search = seek_maximum(
        theta,
        max_iter=max_iter,
        callback=callback,
        curvature=warm_start.curvature(objective),
        patience=patience,
        **options,
    )
    found = yield from attach_objective(objective, search)
    if path and found.reason == EDGE:
        LOG.info("following the central path: the search reached the edge beyond which values are not finite")
        centre = _centre(objective, theta, options["bound"])
        found = yield from _follow(objective, centre, found, max_iter, callback, options, inside)
    return found


def _centre(objective: Objective, start: Floats, bound: float) -> Floats:
    """Return a θ well inside the feasible set, where the path starts; failing that, the default start, or `start`.

    At the start or the end of a search, policies may be all but deterministic, and Newton steps far too long. So they
    may be at zero, the default start, under a prior policy whose trajectories hardly end.
    """
    if not isinstance(objective, Objective):  # several groups
        return start
    found = feasible_theta(objective.mdp, bound, objective.planner.model.live)
    if found is not None and np.isfinite(objective(found).value):
        return found
    try:
        return initial_theta(objective.mdp, objective, bound)
    except ValueError:
        return start


def _follow(
    objective: Objective,
    start: Floats,
    before: Result,
    max_iter: int,
    callback: Callback | None,
    options: dict[str, Any],
    inside: PathPoint | None,
) -> Generator[EvaluationRequest, Evaluation, Result]:
    """Return the maximum by the central path from a start; `before` is the abandoned search."""
    barrier, shrink, done, best, kept = objective.barrier(start), SHRINK, before, before, None
    theta, weight = (start, FIRST_WEIGHT) if inside is None else (inside.theta, inside.weight)
    newton = {name: options[name] for name in ("bound", "unit", "scale")}
    unseen: list[Result] = []  # searches missing from the history of `done`: on J − w B, and failed steps on J
    left = max_iter - before.iterations
    while weight >= LAST_WEIGHT and left > 1:
        guarded = objective.minus_barrier(barrier, weight)
        hessian_function = partial(curvature_at, guarded, by_differences=False)
        search = seek_by_newton(
            theta, max_iter=min(LONG, left - 1), tol=CLOSE * weight, hessian_function=hessian_function, **newton
        )
        point = yield from attach_objective(guarded, search)
        unseen.append(point)
        left -= point.iterations
        if inside is not None and not point.converged:
            theta, weight, inside = start, FIRST_WEIGHT, None
            continue
        inside = None
        if point.iterations == LONG and shrink < GENTLE and not point.converged:  # too far from the last point
            weight, shrink = weight / shrink * shrink**0.5, shrink**0.5
            continue
        theta = point.theta
        if kept is None and weight <= KEPT:
            kept = PathPoint(theta, weight)
        hessian_function = partial(curvature_at, objective, by_differences=False)
        search = seek_by_newton(theta, max_iter=1, tol=0.0, hessian_function=hessian_function, trials=1, **newton)
        ahead = yield from attach_objective(objective, search)
        best = max((best, ahead), key=lambda one: float(one.point.value))
        weight *= shrink
        if ahead.iterations == 0:
            unseen.append(ahead)
            continue
        done, unseen = ahead.after(done, *unseen), []
        left = max_iter - done.iterations
        if callback is not None and wants_to_stop(callback, done.history[-1], done.theta, done.point):
            return replace(done, reason=STOPPED_BY_CALLBACK, converged=False)
        if ahead.move.max() <= REACHED * relative_move(theta, ahead.theta, options["unit"]).max():
            break  # Newton's method converges from here
    search = seek_maximum(
        best.theta, max_iter=max(left, 0), callback=continue_callback(callback, done, *unseen), **options
    )
    found = replace((yield from attach_objective(objective, search)).after(done, *unseen), path_point=kept)
    if left <= 1 and not (found.converged or found.stopped):
        return replace(found, reason=f"max_iter={max_iter} iterations were done")
    return replace(found, reason=LIMITED) if found.reason == EDGE else found
