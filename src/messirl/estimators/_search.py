"""Search for the maximum of J: the solver, then saddle points that it ends on, then a second start where J has several.

A search yields requests for evaluations, so that several of them can be evaluated in a batch (optim/lockstep.py).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from messirl._parameters import default
from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.estimators._central_path import find_maximum
from messirl.estimators._initialization import WarmStart, initial_theta
from messirl.estimators._saddle_point import ascent_direction
from messirl.objective import Evaluation, Objective
from messirl.optim.box_search import RISING, STOPPED_BY_CALLBACK, Callback, Result, continue_callback
from messirl.optim.fixed_steps import fixed_steps
from messirl.optim.lockstep import EvaluationRequest, attach_objective, run_search

SADDLES = 3  # saddle points that a search leaves, at most

FitResult = tuple[MDP, Trajectories, Objective, Floats, Result]  # the arguments that finish a fit
FitSteps = Generator[EvaluationRequest, Evaluation, FitResult]
Search = Generator[EvaluationRequest, Evaluation, Result]


@dataclass(frozen=True)
class SearchSettings:
    """Settings of a search: the bound of every weight, and the solver's, as the parameters of an estimator."""

    bound: float
    max_iter: int
    tol: float
    callback: Callback | None = None
    solver: str = default("solver")
    step_size: float = default("step_size")

    def after(self, result: Result) -> SearchSettings:
        """Return the settings of a search that goes on after a first one."""
        left = self.max_iter - result.iterations
        return replace(self, max_iter=left, callback=continue_callback(self.callback, result))


@dataclass(frozen=True, eq=False)
class PreparedFit:
    """A fit up to its search: the data are read, and the objective and the start are known.

    trajectories : those in the objective
    search : returns the search for the maximum, which ends with the objective and the result
    """

    mdp: MDP
    trajectories: Trajectories
    objective: Objective
    start: WarmStart
    search: Callable[[], Generator[EvaluationRequest, Evaluation, tuple[Objective, Result]]]

    def steps(self) -> FitSteps:
        """Search step by step, for batches; end with the arguments that finish the fit."""
        objective, result = yield from self.search()
        return self.mdp, self.trajectories, objective, self.start.theta, result

    def found(self) -> FitResult:
        """Search, and return the arguments that finish the fit."""
        return run_search(self.steps())


def run_solver(objective: Objective, start: WarmStart, settings: SearchSettings) -> Search:
    """Maximise J by the solver, from a start."""
    shared: dict[str, Any] = {
        "bound": settings.bound,
        "max_iter": settings.max_iter,
        "tol": settings.tol,
        "callback": settings.callback,
    }
    if settings.solver == "paper":
        search = fixed_steps(start.theta, step_size=settings.step_size, unit=objective.unit, **shared)
        return (yield from attach_objective(objective, search))
    return (yield from find_maximum(objective, start, **shared))


def search_beyond_saddles(objective: Objective, start: WarmStart, settings: SearchSettings) -> Search:
    """Maximise J by the solver, and continue from saddle points on which it ends."""
    result = yield from run_solver(objective, start, settings)
    for _ in range(SADDLES):
        way = ascent_direction(objective, result.theta, settings.bound) if result.converged else None
        if way is None:
            break
        sides = [np.clip(result.theta + side * way, -settings.bound, settings.bound) for side in (0.1, -0.1)]
        begin = max(sides, key=lambda at: objective(at).value)
        beyond = yield from run_solver(objective, WarmStart(begin), settings.after(result))
        result = beyond.after(result)
    return result


def search_twice(objective: Objective, start: WarmStart, settings: SearchSettings) -> Search:
    """Maximise J from a start and, where there may be several optima, from the default start; return the better one."""
    found = yield from search_beyond_saddles(objective, start, settings)
    again = settings.after(found)
    if not found.converged or objective.concave or again.max_iter <= 0:
        return found
    begin = initial_theta(objective.mdp, objective, settings.bound)
    other = yield from run_solver(objective, WarmStart(begin), again)
    if other.stopped:
        return replace(found.with_evaluations_of(other), reason=STOPPED_BY_CALLBACK, converged=False)
    rise = other.point.value - found.point.value
    if other.converged and rise > RISING * (1.0 + abs(found.point.value)):
        return other.after(found)
    return found.with_evaluations_of(other)
