"""A search for the maximum of a function over the box ‖θ‖∞ ≤ θ_max: where it is, how it got there, ways to go on.

Nothing here knows of an MDP. Weights are measured in units of their own: `unit` (d,) is the spread of each feature, so
that θ_j · unit_j has no unit. A feature given in millimetres instead of metres then changes neither the search nor when
it stops.

A search is a generator that yields θ and is sent the evaluation there, so that several searches can be answered at
once; `answered` answers one with a function.
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
LOST = 1e-10  # the same of the rise of a step: with γ close to 1 a value has errors of about EPS · |V| / (1 − γ)
EDGED = 20  # steps in a row that were shortened because the function is −inf close by
STALE = 5  # steps within which the expected move must halve, once the value hardly rises
NEAR = 1e-2  # an expected move below which Newton's method takes over
ROUNDS = 5  # rounds of Newton's method at most
PROBE = 1e-4  # length, in units, of the differences that give its curvature
ENOUGH = 1e-2  # share of the squared residual at which its step is accurate enough, to about a tenth
FEW = 16  # with so few weights Newton's step is computed in full
RESOLVED = 1e-8  # curvature, relative to the largest, that such differences can tell from zero
EXACT = 1e-13  # the same of an exact Hessian
RISING = 1e-10  # relative rise of a value that is more than rounding
DRAWN_BACK = 1e-6  # how far towards the start a result is drawn whose values cannot be found anew

SETTLED = "no weight would move by more than tol"
UNSETTLED = "the objective hardly rises any more, but some weights are not settled"
EDGE = "the search runs along the edge beyond which the model has no finite value, and some weights are not settled"
ROUNDING = "no step increases the objective any more: rounding is reached"
ASKED = "the callback asked to stop"
COLUMNS = {"iteration": int, "objective": float, "theta_norm": float, "gradient_norm": float, "evaluations": int}
HISTORY = np.dtype(list(COLUMNS.items()))

Function = Callable[[Floats], Any]  # θ → anything with a `value` and a `gradient`
Bend = Callable[[Floats], Floats | None]  # θ → −∇² (d, d)
Callback = Callable[[dict[str, Any]], object]
T = TypeVar("T")
Asking = Generator[Floats, Any, T]  # yields θ, is sent the evaluation there, and returns a T in the end


@dataclass(frozen=True)
class Result:
    """Where a solver ended, and why.

    move : (d,) how far each weight would still move, relative to max(|θ_j|, 1/unit_j), judged by the curvature so far
    curvature : (d, d) −∇² there, where the search was given an exact Hessian and came close to an optimum
    inside : a point of the central path on the way there, where the path was followed
    """

    theta: Floats
    point: Any
    history: np.recarray[Any, Any]
    converged: bool
    reason: str
    gradient_norm: float
    move: Floats
    curvature: Floats | None = None
    inside: Any = None

    @property
    def iterations(self) -> int:
        """Iterations done."""
        return int(self.history.iteration[-1])

    @property
    def evaluations(self) -> int:
        """Evaluations asked for."""
        return int(self.history.evaluations[-1])

    def after(self, before: Result, *others: Result) -> Result:
        """The two as one search, of which `before` was the first part.

        others : searches of other functions in between, whose iterations and evaluations count
        """
        rest = np.array(self.history[1:])
        rest["iteration"] += before.iterations + sum(other.iterations for other in others)
        spent = before.evaluations + sum(other.evaluations for other in others)
        rest["evaluations"] += spent
        history = np.concatenate([before.history, rest]).view(np.recarray)
        for name in ("objective", "theta_norm", "gradient_norm"):  # of where it ended, also if it made no step
            history[name][-1] = self.history[name][-1]
        history.evaluations[-1] = self.evaluations + spent
        history.objective[:] = np.maximum.accumulate(history.objective)
        return replace(self, history=history)

    def at_a_cost_of(self, other: Result) -> Result:
        """The same with the evaluations of another search, which found nothing better."""
        history = self.history.copy()
        history.evaluations[-1] += other.evaluations
        return replace(self, history=history)

    def drawn_back(self, start: Floats, objective: Callable[[Floats], Any]) -> Result:
        """The result a little towards the start, and so a little inside of where values are finite."""
        theta = self.theta + DRAWN_BACK * (start - self.theta)
        return replace(self, theta=theta, point=objective(theta))

    @property
    def stopped(self) -> bool:
        """Whether the callback stopped it."""
        return self.reason == ASKED


def wants_to_stop(callback: Callback, row: Any, theta: Floats, point: Any) -> bool:
    """Tell a callback of an iteration, a row of the history, and return whether it asks to stop."""
    answer = callback({**dict(zip(COLUMNS, row, strict=True)), "theta": theta.copy(), "point": point})
    return isinstance(answer, bool | np.bool_) and bool(answer)


def continued(callback: Callback | None, *before: Result) -> Callback | None:
    """A callback for a search that goes on after others: numbered through, and without its first point."""
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
    """‖clip(θ + g) − θ‖∞: how far the gradient still leads inside the box. Zero at the optimum."""
    return float(np.abs(np.clip(theta + gradient, -bound, bound) - theta).max(initial=0.0))


def relative_move(here: Floats, there: Floats, unit: Floats) -> Floats:
    """How far each weight goes from here to there, (d,), relative to max(|θ_j|, 1/unit_j)."""
    return np.asarray(np.abs(there - here) * unit / np.maximum(1.0, np.abs(here) * unit))


class Climb:
    """A point on the way up, how it got there, and the ways to go on from it.

    unit, scale : (d,) or None, as for `lbfgs`. Directions and gradients are those of θ · scale
    callback : told of every iteration; where it returns True, the climb is `stopped`
    rising : whether the value can fall only by rounding; such a fall is recorded as no change
    certain : whether curvature is found anew where it matters; if not, what is known of it is checked at every step
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
        rising: bool,
        certain: bool = True,
        curvature: Floats | None = None,
        bend: Bend | None = None,
    ) -> None:
        self.theta, self.bound, self.tol, self.callback, self.rising = theta, bound, tol, callback, rising
        self.certain, self.bend = certain, bend
        self.unit = np.ones_like(theta) if unit is None else unit
        self.scale = self.unit if scale is None else scale
        self.secants = Secants(theta.size, self._scaled(curvature))
        self.evaluations = self.edged = self.blocked = 0
        self.hessian: Floats | None = None  # −∇² at `theta`, once it has been asked for
        self.stride = np.inf  # how far the last step went, as `move` measures it
        self.foreseen = False  # whether the curvature known before it foresaw how the gradient falls along it
        self.rows: list[tuple[int, float, float, float, int]] = []  # of the history

    def begin(self, theta: Floats) -> Asking[None]:
        """Stand at θ."""
        point = finite_point((yield from self.at(theta)), "at the start", "begin at a theta with more negative rewards")
        self.arrive(theta, point)

    def at(self, theta: Floats) -> Asking[Any]:
        """The evaluation at θ."""
        self.evaluations += 1
        point = yield theta
        self.blocked += not np.isfinite(point.value)
        return point

    def tried(self, blocked: float, evaluations: float) -> bool:
        """Return whether more evaluations had no finite value than `blocked`, or one had none of so many in all."""
        return self.blocked > blocked or (self.blocked > 0 and self.evaluations > evaluations)

    def _scaled(self, curvature: Floats | None) -> Floats | None:
        return None if curvature is None else curvature / np.outer(self.scale, self.scale)

    def arrive(self, theta: Floats, point: Any) -> None:
        """Stand there, and say so."""
        self.theta, self.point, self.iteration, self.hessian = theta, point, len(self.rows), None
        norm = projected_norm(theta, point.gradient, self.bound)
        size = float(np.abs(theta).max(initial=0.0))
        value = max(point.value, self.rows[-1][1]) if self.rising and self.rows else point.value
        self.rows.append((self.iteration, value, size, norm, self.evaluations))
        self.stopped = self.callback is not None and wants_to_stop(self.callback, self.rows[-1], theta, point)

    def step_to(self, theta: Floats, point: Any) -> None:
        """Go on from there, and learn the curvature on the way."""
        step, fall = (theta - self.theta) * self.scale, (self.point.gradient - point.gradient) / self.scale
        self.foreseen = not self.certain and self.secants.foresee(step, fall)
        if self.secants.told and not (self.certain or self.foreseen):
            self.secants.forget(None if self.bend is None else self._scaled(self.bend(theta)))
        else:
            self.secants.add(step, fall)
        self.stride = float(self._relative(theta).max(initial=0.0))
        self.arrive(theta, point)

    def learn(self, been: Iterable[tuple[Floats, Floats]]) -> None:
        """Learn the curvature from points in the order in which they were met, each a θ and the gradient there."""
        thetas, gradients = (np.array(column) for column in zip(*been, strict=True))
        self.secants.relearn(np.diff(thetas, axis=0) * self.scale, -np.diff(gradients, axis=0) / self.scale)

    def result(self, move: Floats, reason: str, *, converged: bool = False) -> Result:
        """The search ended here."""
        self.rows[-1] = (*self.rows[-1][:-1], self.evaluations)  # evaluations after the last step count too
        history = np.array(self.rows, dtype=HISTORY).view(np.recarray)
        return Result(self.theta, self.point, history, converged, reason, self.rows[-1][3], move, self.hessian)

    @property
    def free(self) -> Flags:
        """The weights that the box does not hold."""
        return np.asarray(~self.at_box | (self.theta * self.point.gradient < 0))

    @property
    def at_box(self) -> Flags:
        """The weights that lie on the edge of the box."""
        return np.asarray(np.abs(self.theta) >= self.bound)

    def gradient(self, free: Flags) -> Floats:
        """The gradient with respect to θ · scale on the free weights, zero on the others."""
        return np.where(free, self.point.gradient / self.scale, 0.0)

    def lead(self, solve: Callable[[Floats, Flags], Asking[Floats]]) -> Asking[tuple[Floats, Floats]]:
        """The gradient, and the direction that `solve` makes of it, on the weights that neither leads out of the box.

        The direction may lead a weight out of the box that the gradient leads into it: if only the direction were cut
        off there, it might not lead up.
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
        """How far each weight would go, relative to its size or its unit, whichever is larger."""
        return self._relative(np.clip(self.theta + direction / self.scale, -self.bound, self.bound))

    def _relative(self, theta: Floats) -> Floats:
        return relative_move(self.theta, theta, self.unit)

    def along(self, direction: Floats, step: float = 1.0, trials: int = MAX_TRIALS) -> Asking[bool]:
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
            if not promised > 0.0:  # the box cuts off too much: go until the first weight reaches it
                first = reach_of(direction, (self.bound - np.sign(direction) * theta) * self.scale) * (1.0 + 1e-9)
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
            # The top of the parabola given by the slope here and by the slope, or the value, at the trial point.
            top = promised / max(promised - slope, 1e-300) if lost else 0.5 * promised / max(promised - rise, 1e-300)
            step *= min(max(top, 0.1), 0.5)
        return False

    def up(self, direction: Floats, gradient: Floats, *, near: bool) -> Asking[bool]:
        """One step of L-BFGS or, if that fails and the optimum is not `near`, along the gradient."""
        if self.secants.known:
            if (yield from self.along(direction)):
                return True
            if near:
                return False
            self.secants.forget()
        return (yield from self.along(gradient, 1.0 / max(1.0, float(np.abs(gradient).sum()))))

    def by_secants(self, gradient: Floats, free: Flags) -> Asking[Floats]:
        """The step H⁻¹ g of L-BFGS, H from the steps so far."""
        yield from ()  # asks nothing, where `newton` does
        return self.secants.solve(gradient, free)

    def exact_newton(self, gradient: Floats, free: Flags) -> Asking[Floats]:
        """Newton's step H⁻¹ g with the exact H that `bend` gives; NaN where it gives none."""
        yield from ()
        if self.hessian is None and self.bend is not None:
            self.hessian = self.bend(self.theta)
        if self.hessian is None:
            return np.full_like(gradient, np.nan)
        size = np.maximum(1.0, np.abs(self.theta) * self.scale)
        return self._exact_step(self.hessian, gradient, free, size)

    def newton(self, gradient: Floats, free: Flags) -> Asking[Floats]:
        """Newton's step H⁻¹ g; NaN if it fails.

        H is exact where `bend` gives it, else H is applied by differences of gradients, within conjugate gradients.
        A direction in which the function is flat, as far as H can tell, is left out, unless the function still rises
        there: then the step is as long as the weights.
        """
        size = np.maximum(1.0, np.abs(self.theta) * self.scale)
        if self.bend is not None and self.hessian is None:
            self.hessian = self.bend(self.theta)
        if self.hessian is not None:
            return self._exact_step(self.hessian, gradient, free, size)
        step, rest = np.zeros_like(gradient), gradient.copy()
        lead = self.secants.solve(rest, free)
        way, left = lead, float(rest @ lead)
        first, steepest, weakest = left, 0.0, self.secants.weakest
        for _ in range(2 * int(free.sum()) + 2):
            # Settled: even where the function bends least, what is left of the gradient moves no weight by more than
            # tol. With few weights the step is always computed in full.
            settled = free.sum() > FEW and float(np.abs(rest).max()) <= self.tol * weakest
            if not left > (ENOUGH if settled else 1e-12) * first:
                break
            bent = yield from self._bend(way, size, free)
            if bent is None:
                return np.full_like(step, np.nan)
            curvature, square = float(way @ bent), float(way @ way)
            steepest = max(steepest, curvature / square)
            if not curvature > RESOLVED * steepest * square:
                reach = reach_of(way, size)
                rises = reach * left > RISING * (1.0 + abs(self.point.value))
                return step + reach * way if rises else step
            weakest = min(weakest, curvature / square)
            step, rest = step + left / curvature * way, rest - left / curvature * bent
            lead = self.secants.solve(rest, free)
            left, before = float(rest @ lead), left
            way = lead + left / before * way
        return step

    def _exact_step(self, hessian: Floats, gradient: Floats, free: Flags, size: Floats) -> Floats:
        """Newton's step from the eigenvectors of −∇², in units of `scale`, on the free weights."""
        step = np.zeros_like(gradient)
        scaled = hessian / np.outer(self.scale, self.scale)
        values, vectors = np.linalg.eigh(scaled[np.ix_(free, free)])
        slopes = vectors.T @ gradient[free]
        curved = values > EXACT * float(np.abs(values).max(initial=0.0))
        step[free] = vectors[:, curved] @ (slopes[curved] / values[curved])
        for slope, way in zip(slopes[~curved], vectors[:, ~curved].T, strict=True):
            reach = reach_of(way, size[free])
            if reach * abs(slope) > RISING * (1.0 + abs(self.point.value)):
                step[free] += np.copysign(reach, slope) * way
        return step

    def _bend(self, way: Floats, size: Floats, free: Flags) -> Asking[Floats | None]:
        """H v: how fast the gradient falls along a direction; None if the function is not finite close by."""
        reach = reach_of(way, PROBE * np.maximum(1.0, PROBE * size))  # by more than the rounding of large weights
        for length in (reach, -reach):
            there = yield from self.at(self.theta + length * way / self.scale)
            if np.isfinite(there.value):
                return np.where(free, (self.point.gradient - there.gradient) / self.scale, 0.0) / length
        return None


def answered(function: Function, search: Asking[T]) -> T:
    """What a search finds when a function answers it."""
    try:
        theta = next(search)
        while True:
            theta = search.send(function(theta))
    except StopIteration as end:
        found: T = end.value
        return found


def reach_of(way: Floats, most: Floats) -> float:
    """How far to go along a direction until the first coordinate has moved by the most it may."""
    return float((most / np.maximum(np.abs(way), 1e-300)).min())


def finite_point(point: Any, when: str, remedy: str) -> Any:
    """Return the point, or raise a ValueError where its value is not finite."""
    if not np.isfinite(point.value):
        raise ValueError(f"the objective is not finite {when}: the model has no finite value there; {remedy}")
    return point
