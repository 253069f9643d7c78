"""Maximisation over the box ‖θ‖∞ ≤ θ_max: the state of a search, its step directions, line search and result.

This module does not depend on MDPs. Each weight is measured in its own unit: `unit` (d,) is the spread of each feature,
so that θ_j · unit_j is dimensionless. A feature given in millimetres instead of metres then changes neither the search
nor its stopping rule.

A search is a generator that yields θ and is sent the evaluation there, so that several searches can be evaluated in a
batch; `run_with_function` runs one search with a function.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from messirl._types import Flags, Floats
from messirl.optim.lbfgs_memory import Secants

ARMIJO = 1e-4
MAX_TRIALS = 60
NOISE = 1e-12  # relative change of a value that may be rounding alone
LOST = 1e-10  # the same for the rise of a step: with γ close to 1 a value has errors of about EPS · |V| / (1 − γ)
EDGED = 20  # consecutive steps shortened because the function is −inf close by
STALE = 5  # steps within which the expected move must halve, once the value hardly rises
NEAR = 1e-2  # an expected move below which Newton's method takes over
ROUNDS = 5  # maximum number of Newton steps at the end
PROBE = 1e-4  # length, in units, of the finite differences for the Hessian
ENOUGH = 1e-2  # share of the squared residual at which Newton's step is accurate to about a tenth
FEW = 16  # number of weights up to which Newton's step is computed in full
RESOLVED = 1e-8  # curvature, relative to the largest, that finite differences can tell from zero
EXACT = 1e-13  # the same for an exact Hessian
RISING = 1e-10  # relative rise of a value that is more than rounding
DRAWN_BACK = 1e-6  # share of the way back to the start that a result is moved if its values cannot be reproduced

SETTLED = "no weight would move by more than tol"
UNSETTLED = "the objective hardly rises any more, but some weights have not converged"
EDGE = "the search runs along the edge beyond which the model has no finite value; some weights have not converged"
ROUNDING = "no step increases the objective any more: rounding is reached"
STOPPED_BY_CALLBACK = "the callback asked to stop"
COLUMNS = {"iteration": int, "objective": float, "theta_norm": float, "gradient_norm": float, "evaluations": int}
HISTORY = np.dtype(list(COLUMNS.items()))

Function = Callable[[Floats], Any]  # θ → anything with a `value` and a `gradient`
HessianFunction = Callable[[Floats], Floats | None]  # the negative Hessian: θ → −∇² (d, d)
Callback = Callable[[dict[str, Any]], object]
T = TypeVar("T")
SearchSteps = Generator[Floats, Any, T]  # yields θ, is sent the evaluation there, and returns a T in the end


@dataclass(frozen=True)
class Result:
    """Result of a search: the last θ, its evaluation, the history, and why the search ended.

    move : (d,) the estimated remaining change of each weight, relative to max(|θ_j|, 1/unit_j)
    curvature : (d, d) −∇² at θ, if the search had an exact Hessian and came close to an optimum
    path_point : a point of the central path, if the path was followed
    """

    theta: Floats
    point: Any
    history: np.recarray[Any, Any]
    converged: bool
    reason: str
    gradient_norm: float
    move: Floats
    curvature: Floats | None = None
    path_point: Any = None

    @property
    def iterations(self) -> int:
        """Number of iterations."""
        return int(self.history.iteration[-1])

    @property
    def evaluations(self) -> int:
        """Number of evaluations."""
        return int(self.history.evaluations[-1])

    def after(self, before: Result, *others: Result) -> Result:
        """Return the two as one search, of which `before` was the first part.

        others : searches of other functions in between, whose iterations and evaluations count
        """
        rest = np.array(self.history[1:])
        rest["iteration"] += before.iterations + sum(other.iterations for other in others)
        spent = before.evaluations + sum(other.evaluations for other in others)
        rest["evaluations"] += spent
        history = np.concatenate([before.history, rest]).view(np.recarray)
        for name in ("objective", "theta_norm", "gradient_norm"):  # at the last θ, even if it made no step
            history[name][-1] = self.history[name][-1]
        history.evaluations[-1] = self.evaluations + spent
        history.objective[:] = np.maximum.accumulate(history.objective)
        return replace(self, history=history)

    def with_evaluations_of(self, other: Result) -> Result:
        """Return this result with the evaluations of another search added, which found nothing better."""
        history = self.history.copy()
        history.evaluations[-1] += other.evaluations
        return replace(self, history=history)

    def moved_inside(self, start: Floats, objective: Callable[[Floats], Any]) -> Result:
        """Return the result moved slightly towards the start, into the interior of where values are finite."""
        theta = self.theta + DRAWN_BACK * (start - self.theta)
        return replace(self, theta=theta, point=objective(theta))

    @property
    def stopped(self) -> bool:
        """True if the callback stopped the search."""
        return self.reason == STOPPED_BY_CALLBACK


def wants_to_stop(callback: Callback, row: Any, theta: Floats, point: Any) -> bool:
    """Call a callback with an iteration, a row of the history, and return whether it asks to stop."""
    answer = callback({**dict(zip(COLUMNS, row, strict=True)), "theta": theta.copy(), "point": point})
    return isinstance(answer, bool | np.bool_) and bool(answer)


def continue_callback(callback: Callback | None, *before: Result) -> Callback | None:
    """Return the callback for a search that continues others: it counts on from them and skips the first point."""
    if callback is None:
        return None

    def later(state: dict[str, Any]) -> object:
        if state["iteration"] == 0:
            return None
        counts = {
            "iteration": state["iteration"] + sum(search.iterations for search in before),
            "evaluations": state["evaluations"] + sum(search.evaluations for search in before),
        }
        return callback({**state, **counts})

    return later


def projected_norm(theta: Floats, gradient: Floats, bound: float) -> float:
    """Return the norm of the projected gradient, ‖clip(θ + g) − θ‖∞, which is zero at the optimum."""
    return float(np.abs(np.clip(theta + gradient, -bound, bound) - theta).max(initial=0.0))


def relative_move(here: Floats, there: Floats, unit: Floats) -> Floats:
    """Return the change of each weight from here to there, (d,), relative to max(|θ_j|, 1/unit_j)."""
    return np.asarray(np.abs(there - here) * unit / np.maximum(1.0, np.abs(here) * unit))


class BoxSearch:
    """State of a search: the current point, its history and curvature memory, and the steps from it.

    unit, scale : (d,) or None, as for `lbfgs`. Directions and gradients are with respect to θ · scale
    callback : called at every iteration; if it returns True, the search is `stopped`
    monotone : whether the value can fall only by rounding; such a fall is recorded as no change
    confirm_by_newton : whether the Hessian is recomputed where it matters; if not, the known one is checked at every
    step
    """

    def __init__(
        self,
        theta: Floats,
        bound: float,
        tol: float,
        unit: Floats | None,
        scale: Floats | None,
        callback: Callback | None,
        *,
        monotone: bool,
        confirm_by_newton: bool = True,
        curvature: Floats | None = None,
        hessian_function: HessianFunction | None = None,
    ) -> None:
        self.theta, self.bound, self.tol, self.callback, self.monotone = theta, bound, tol, callback, monotone
        self.confirm_by_newton, self.hessian_function = confirm_by_newton, hessian_function
        self.unit = np.ones_like(theta) if unit is None else unit
        self.scale = self.unit if scale is None else scale
        self.secants = Secants(theta.size, self._scaled(curvature))
        self.evaluations = self.edged = self.blocked = 0
        self.hessian: Floats | None = None  # −∇² at `theta`, once computed
        self.stride = np.inf  # length of the last step, in the measure of `move`
        self.step_was_predicted = (
            False  # whether the curvature known before the last step predicted the change of the gradient
        )
        self.rows: list[tuple[int, float, float, float, int]] = []  # of the history

    def begin(self, theta: Floats) -> SearchSteps[None]:
        """Start at θ; raise a ValueError where the value is not finite."""
        point = finite_point((yield from self.at(theta)), "at the start", "start at a theta with more negative rewards")
        self.arrive(theta, point)

    def at(self, theta: Floats) -> SearchSteps[Any]:
        """Return the evaluation at θ."""
        self.evaluations += 1
        point = yield theta
        self.blocked += not np.isfinite(point.value)
        return point

    def has_failed(self, blocked: float, evaluations: float) -> bool:
        """Return whether over `blocked` evaluations were not finite, or any was not after over `evaluations`."""
        return self.blocked > blocked or (self.blocked > 0 and self.evaluations > evaluations)

    def _scaled(self, curvature: Floats | None) -> Floats | None:
        return None if curvature is None else curvature / np.outer(self.scale, self.scale)

    def arrive(self, theta: Floats, point: Any) -> None:
        """Move to θ, record it in the history and call the callback."""
        self.theta, self.point, self.iteration, self.hessian = theta, point, len(self.rows), None
        norm = projected_norm(theta, point.gradient, self.bound)
        size = float(np.abs(theta).max(initial=0.0))
        value = max(point.value, self.rows[-1][1]) if self.monotone and self.rows else point.value
        self.rows.append((self.iteration, value, size, norm, self.evaluations))
        self.stopped = self.callback is not None and wants_to_stop(self.callback, self.rows[-1], theta, point)

    def step_to(self, theta: Floats, point: Any) -> None:
        """Move to θ, and update the curvature memory with the step."""
        step, fall = (theta - self.theta) * self.scale, (self.point.gradient - point.gradient) / self.scale
        self.step_was_predicted = not self.confirm_by_newton and self.secants.predicts_step(step, fall)
        if self.secants.uses_given_curvature and not (self.confirm_by_newton or self.step_was_predicted):
            self.secants.forget(None if self.hessian_function is None else self._scaled(self.hessian_function(theta)))
        else:
            self.secants.add(step, fall)
        self.stride = float(self._relative(theta).max(initial=0.0))
        self.arrive(theta, point)

    def set_curvature_memory(self, been: Iterable[tuple[Floats, Floats]]) -> None:
        """Set the curvature memory from a sequence of visited points, each a θ and the gradient there."""
        thetas, gradients = (np.array(column) for column in zip(*been, strict=True))
        self.secants.relearn(np.diff(thetas, axis=0) * self.scale, -np.diff(gradients, axis=0) / self.scale)

    def result(self, move: Floats, reason: str, *, converged: bool = False) -> Result:
        """Return the result of a search that ends here."""
        self.rows[-1] = (*self.rows[-1][:-1], self.evaluations)  # evaluations after the last step count too
        history = np.array(self.rows, dtype=HISTORY).view(np.recarray)
        return Result(self.theta, self.point, history, converged, reason, self.rows[-1][3], move, self.hessian)

    @property
    def free(self) -> Flags:
        """The free weights: those inside the box, or at a bound from which the gradient points inwards."""
        return np.asarray(~self.at_box | (self.theta * self.point.gradient < 0))

    @property
    def at_box(self) -> Flags:
        """The weights at their bound."""
        return np.asarray(np.abs(self.theta) >= self.bound)

    def gradient(self, free: Flags) -> Floats:
        """Return the gradient with respect to θ · scale on the free weights, and zero on the rest."""
        return np.where(free, self.point.gradient / self.scale, 0.0)

    def ascent_direction(
        self, solve: Callable[[Floats, Flags], SearchSteps[Floats]]
    ) -> SearchSteps[tuple[Floats, Floats]]:
        """Return the gradient and the direction `solve` gives, on the weights that neither moves out of the box.

        The direction may move a weight out of the box that the gradient moves inwards: clipping the direction alone
        might give one that does not ascend.
        """
        free = self.free
        while True:
            gradient = self.gradient(free)
            direction = yield from solve(gradient, free)
            out = self.at_box & (self.theta * direction > 0)
            if not out.any():
                return gradient, direction
            free = free & ~out

    def move(self, direction: Floats) -> Floats:
        """Return the change of each weight by a step, relative to its size or its unit, whichever is larger."""
        return self._relative(np.clip(self.theta + direction / self.scale, -self.bound, self.bound))

    def _relative(self, theta: Floats) -> Floats:
        return relative_move(self.theta, theta, self.unit)

    def line_search(self, direction: Floats, step: float = 1.0, trials: int = MAX_TRIALS) -> SearchSteps[bool]:
        """Backtrack along the projected path clip(θ + α d) until the value has risen enough; return whether it has.

        If the rise is lost in rounding, the slope decides: it must not point back as steeply (Hager & Zhang 2005).
        """
        theta, point = self.theta, self.point
        noise = LOST * (1.0 + abs(point.value))
        beyond = lost = False
        for trial in range(trials):
            ahead = np.clip(theta + step * direction / self.scale, -self.bound, self.bound)
            moved = ahead - theta
            promised = float(point.gradient @ moved)
            if not promised > 0.0:  # the projection cuts off too much: stop where the first weight meets its bound
                first = step_to_limit(direction, (self.bound - np.sign(direction) * theta) * self.scale) * (1.0 + 1e-9)
                if step <= first:
                    return False
                step = first
                continue
            there = yield from self.at(ahead)
            rise = there.value - point.value
            lost = (lost or trial == 0) and max(promised, abs(rise)) <= noise
            slope = float(there.gradient @ moved)
            if slope >= -0.9 * promised if lost else rise >= max(ARMIJO * promised, 0.0):
                self.step_to(ahead, there)
                self.edged = self.edged + 1 if beyond and step < 0.1 else 0
                return True
            if not np.isfinite(there.value):
                beyond = True
                step *= 0.25
                continue
            # The maximum of the parabola through the slope here and the slope, or the value, at the trial point.
            top = promised / max(promised - slope, 1e-300) if lost else 0.5 * promised / max(promised - rise, 1e-300)
            step *= min(max(top, 0.1), 0.5)
        return False

    def ascend(self, direction: Floats, gradient: Floats, *, near: bool) -> SearchSteps[bool]:
        """Take a step of L-BFGS or, if that fails and the optimum is not `near`, along the gradient."""
        if self.secants.known:
            if (yield from self.line_search(direction)):
                return True
            if near:
                return False
            self.secants.forget()
        return (yield from self.line_search(gradient, 1.0 / max(1.0, float(np.abs(gradient).sum()))))

    def lbfgs_step(self, gradient: Floats, free: Flags) -> SearchSteps[Floats]:
        """Return the step H⁻¹ g of L-BFGS, H from the steps so far."""
        yield from ()  # a generator without evaluations, for the interface of `newton_step`
        return self.secants.solve(gradient, free)

    def exact_newton_step(self, gradient: Floats, free: Flags) -> SearchSteps[Floats]:
        """Newton's step H⁻¹ g with the exact H that `hessian_function` gives; NaN where it gives none."""
        yield from ()
        step = self._exact_step(gradient, free, self._size)
        return np.full_like(gradient, np.nan) if step is None else step

    def newton_step(self, gradient: Floats, free: Flags) -> SearchSteps[Floats]:
        """Return Newton's step H⁻¹ g; NaN if it fails.

        H is exact where `hessian_function` gives it. Otherwise the step is found by conjugate gradients, with H
        applied by differences of gradients. Directions without curvature are left out, unless the function still
        rises along them: then the step is as long as the weights.
        """
        size = self._size
        exact = self._exact_step(gradient, free, size)
        if exact is not None:
            return exact
        step, rest = np.zeros_like(gradient), gradient.copy()
        lead = self.secants.solve(rest, free)
        way, left = lead, float(rest @ lead)
        first, steepest, weakest = left, 0.0, self.secants.weakest
        for _ in range(2 * int(free.sum()) + 2):
            # Settled: even at the smallest curvature, the residual gradient moves no weight by more than tol. With few
            # weights the step is always computed in full.
            settled = free.sum() > FEW and float(np.abs(rest).max()) <= self.tol * weakest
            if not left > (ENOUGH if settled else 1e-12) * first:
                break
            bent = yield from self._hessian_product(way, size, free)
            if bent is None:
                return np.full_like(step, np.nan)
            curvature, square = float(way @ bent), float(way @ way)
            steepest = max(steepest, curvature / square)
            if not curvature > RESOLVED * steepest * square:
                reach = step_to_limit(way, size)
                rises = reach * left > RISING * (1.0 + abs(self.point.value))
                return step + reach * way if rises else step
            weakest = min(weakest, curvature / square)
            step, rest = step + left / curvature * way, rest - left / curvature * bent
            lead = self.secants.solve(rest, free)
            left, before = float(rest @ lead), left
            way = lead + left / before * way
        return step

    @property
    def _size(self) -> Floats:
        """The size of each weight in units of `scale`, at least 1, (d,)."""
        return np.asarray(np.maximum(1.0, np.abs(self.theta) * self.scale))

    def _exact_step(self, gradient: Floats, free: Flags, size: Floats) -> Floats | None:
        """Return Newton's step from the eigenvectors of −∇², in units of `scale`, on the free weights.

        None if there is no `hessian_function`, or it gives nothing at θ.
        """
        if self.hessian is None and self.hessian_function is not None:
            self.hessian = self.hessian_function(self.theta)
        if self.hessian is None:
            return None
        step = np.zeros_like(gradient)
        scaled = self.hessian / np.outer(self.scale, self.scale)
        values, vectors = np.linalg.eigh(scaled[np.ix_(free, free)])
        slopes = vectors.T @ gradient[free]
        curved = values > EXACT * float(np.abs(values).max(initial=0.0))
        step[free] = vectors[:, curved] @ (slopes[curved] / values[curved])
        for slope, way in zip(slopes[~curved], vectors[:, ~curved].T, strict=True):
            reach = step_to_limit(way, size[free])
            if reach * abs(slope) > RISING * (1.0 + abs(self.point.value)):
                step[free] += np.copysign(reach, slope) * way
        return step

    def _hessian_product(self, way: Floats, size: Floats, free: Flags) -> SearchSteps[Floats | None]:
        """Return H v by a finite difference of gradients along v; None if the function is not finite close by."""
        reach = step_to_limit(way, PROBE * np.maximum(1.0, PROBE * size))  # by more than the rounding of large weights
        for length in (reach, -reach):
            there = yield from self.at(self.theta + length * way / self.scale)
            if np.isfinite(there.value):
                return np.where(free, (self.point.gradient - there.gradient) / self.scale, 0.0) / length
        return None


def run_with_function(function: Function, search: SearchSteps[T]) -> T:
    """Run a search with a function, and return its result."""
    try:
        theta = next(search)
        while True:
            theta = search.send(function(theta))
    except StopIteration as end:
        found: T = end.value
        return found


def step_to_limit(way: Floats, most: Floats) -> float:
    """Return the step length along a direction at which the first coordinate reaches its limit `most`."""
    return float((most / np.maximum(np.abs(way), 1e-300)).min())


def finite_point(point: Any, when: str, remedy: str) -> Any:
    """Return the point, or raise a ValueError where its value is not finite."""
    if not np.isfinite(point.value):
        raise ValueError(f"the objective is not finite {when}: the model has no finite value there; {remedy}")
    return point
