"""Maximising a concave function over the box ‖θ‖∞ ≤ θ_max; nothing here knows of an MDP.

- `lbfgs`: the optimum, by projected L-BFGS with backtracking. Where the function is −inf the step is shortened; the
  value never falls. It stops when the projected gradient is small, and says so, or says why it stopped otherwise.
- `paper`: Alg. 1. A fixed number of fixed steps, θ rescaled back onto the box where it leaves it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from messirl.problem.mdp import Floats

MEMORY = 20
ARMIJO = 1e-4
MAX_TRIALS = 60
FLAT = 5  # iterations in a row without a rise beyond rounding
ROUNDING = "no step increases the objective any more: rounding is reached"
HISTORY = np.dtype(
    [
        ("iteration", int),
        ("objective", float),
        ("theta_norm", float),
        ("gradient_norm", float),
        ("evaluations", int),
    ]
)


class Point(Protocol):
    """A function's value and gradient at one θ."""

    @property
    def value(self) -> float: ...
    @property
    def gradient(self) -> Floats: ...


Function = Callable[[Floats], Any]
Callback = Callable[[dict[str, Any]], object]


@dataclass(frozen=True)
class Result:
    """Where a solver ended, and why."""

    theta: Floats
    point: Any
    history: np.recarray[Any, Any]
    converged: bool
    reason: str
    gradient_norm: float
    stopped: bool  # by the callback


class _Log:
    """History of a run; tells the callback of every iteration. A callback that returns True stops the run."""

    def __init__(self, bound: float, callback: Callback | None) -> None:
        self.bound, self.callback = bound, callback
        self.rows: list[tuple[int, float, float, float, int]] = []

    def __call__(self, iteration: int, theta: Floats, point: Any, evaluations: int) -> bool:
        norm = projected_norm(theta, point.gradient, self.bound)
        size = float(np.abs(theta).max(initial=0.0))
        self.rows.append((iteration, point.value, size, norm, evaluations))
        if self.callback is None:
            return False
        state = dict(zip(HISTORY.names or (), self.rows[-1], strict=True))
        answer = self.callback({**state, "theta": theta.copy(), "point": point})
        return isinstance(answer, bool | np.bool_) and bool(answer)

    @property
    def norm(self) -> float:
        return self.rows[-1][3]

    def history(self) -> np.recarray[Any, Any]:
        return np.array(self.rows, dtype=HISTORY).view(np.recarray)


def projected_norm(theta: Floats, gradient: Floats, bound: float) -> float:
    """‖clip(θ + g) − θ‖∞: how far the gradient still leads inside the box. Zero at the optimum."""
    return float(np.abs(np.clip(theta + gradient, -bound, bound) - theta).max(initial=0.0))


def paper(
    function: Function,
    theta: Floats,
    *,
    bound: float,
    max_iter: int,
    step_size: float,
    tol: float,
    callback: Callback | None = None,
) -> Result:
    """Alg. 1, with the update of Eq. 7 put right: θ ← θ + step · ∇J(θ), then θ ← θ · θ_max/‖θ‖∞ where ‖θ‖∞ > θ_max."""
    log = _Log(bound, callback)
    theta = rescaled(theta, bound)
    point = _finite(function(theta), "at the start")
    stopped = log(0, theta, point, 1)
    for t in range(1, max_iter + 1):
        if stopped:
            break
        theta = rescaled(theta + step_size * point.gradient, bound)
        point = _finite(function(theta), f"after {t} steps of size {step_size:g}")
        stopped = log(t, theta, point, t + 1)
    converged = log.norm <= tol
    reason = "the callback asked to stop" if stopped else f"all {max_iter} fixed steps were taken"
    return Result(theta, point, log.history(), converged, reason, log.norm, stopped)


def rescaled(theta: Floats, bound: float) -> Floats:
    """The projection of Alg. 1, step 4."""
    size = float(np.abs(theta).max(initial=0.0))
    return theta * (bound / size) if size > bound else theta


def lbfgs(
    function: Function,
    theta: Floats,
    *,
    bound: float,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
) -> Result:
    """The maximum over the box; `tol` bounds the projected gradient at which it counts as found."""
    log = _Log(bound, callback)
    theta = np.clip(theta, -bound, bound)
    point = _finite(function(theta), "at the start")
    evaluations = 1
    stopped = log(0, theta, point, evaluations)
    pairs: list[tuple[Floats, Floats]] = []
    flat = 0
    reason = f"max_iter={max_iter} iterations were done"
    for t in range(1, max_iter + 1):
        if stopped:
            break
        if log.norm <= tol:
            break
        free = (np.abs(theta) < bound) | (theta * point.gradient < 0)
        direction = _direction(point.gradient, free, pairs)
        found, trials = _search(function, theta, point, direction, bound, first=not pairs)
        evaluations += trials
        if found is None and pairs:  # the model of the curvature may be stale: once more along the gradient
            pairs.clear()
            direction = np.where(free, point.gradient, 0.0)
            found, trials = _search(function, theta, point, direction, bound, first=True)
            evaluations += trials
        if found is None:
            reason = ROUNDING
            break
        ahead, next_point = found
        flat = flat + 1 if next_point.value - point.value <= _noise(point.value) else 0
        change, bend = ahead - theta, point.gradient - next_point.gradient
        if change @ bend > 1e-14 * float(np.linalg.norm(change) * np.linalg.norm(bend)):
            pairs.append((change, bend))
            del pairs[:-MEMORY]
        theta, point = ahead, next_point
        stopped = log(t, theta, point, evaluations)
        if flat >= FLAT:
            reason = ROUNDING
            break
    converged = log.norm <= tol
    if stopped:
        reason = "the callback asked to stop"
    elif converged:
        reason = "the projected gradient is below tol"
    return Result(theta, point, log.history(), converged, reason, log.norm, stopped)


def _finite(point: Any, when: str) -> Any:
    if not np.isfinite(point.value):
        raise ValueError(
            f"the objective is not finite {when}: the model has no finite value there; begin at a theta with more "
            "negative rewards, take smaller steps, or use solver='lbfgs', which backs off"
        )
    return point


def _noise(value: float) -> float:
    """A rise that rounding alone may show."""
    return 4.0 * float(np.finfo(float).eps) * (1.0 + abs(value))


def _direction(gradient: Floats, free: Any, pairs: list[tuple[Floats, Floats]]) -> Floats:
    """The two-loop recursion of L-BFGS on the free coordinates (Nocedal & Wright, Alg. 7.4), for a maximum."""
    q = np.where(free, gradient, 0.0)
    used: list[tuple[Floats, Floats, float, float]] = []
    for change, bend in reversed(pairs):
        s, y = np.where(free, change, 0.0), np.where(free, bend, 0.0)
        curvature = float(s @ y)
        if curvature <= 1e-14 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            continue
        alpha = float(s @ q) / curvature
        q = q - alpha * y
        used.append((s, y, curvature, alpha))
    if used:
        s, y, curvature, _ = used[0]
        q = q * (curvature / float(y @ y))
    for s, y, curvature, alpha in reversed(used):
        q = q + (alpha - float(y @ q) / curvature) * s
    return q


def _search(
    function: Function, theta: Floats, point: Any, direction: Floats, bound: float, *, first: bool
) -> tuple[tuple[Floats, Any] | None, int]:
    """Backtracking along the projected path clip(θ + α d) until the value has risen enough."""
    if float(direction @ point.gradient) <= 0.0:
        return None, 0
    step = min(1.0, 1.0 / max(float(np.abs(direction).sum()), 1e-300)) if first else 1.0
    noise = _noise(point.value)
    before = projected_norm(theta, point.gradient, bound)
    for trial in range(1, MAX_TRIALS + 1):
        ahead = np.clip(theta + step * direction, -bound, bound)
        moved = ahead - theta
        if not moved.any():
            return None, trial - 1
        candidate = function(ahead)
        promised = float(point.gradient @ moved)
        rise = candidate.value - point.value
        if rise >= ARMIJO * promised and rise >= 0.0:
            return (ahead, candidate), trial
        if (
            0.0 <= rise <= noise
            and promised <= 10 * noise
            and projected_norm(ahead, candidate.gradient, bound) < before
        ):
            return (ahead, candidate), trial
        if np.isfinite(candidate.value) and promised > 0.0:
            # The parabola through the value, the slope and the trial has its top here.
            best = 0.5 * promised / max(promised - rise, 1e-300)
            step *= min(max(best, 0.1), 0.5)
        else:
            step *= 0.25
    return None, MAX_TRIALS
