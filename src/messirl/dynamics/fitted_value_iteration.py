"""Soft value iteration with any regressor, refitted at every backup.

    V(s) = log Σ_a exp Q_a(s),     Q_a(s) = r_θ(s) + γ Ê_a[V(s')](s),     V = r_θ in terminal states

Ê_a is the regressor fitted to (s_j, V(s'_j)) over the steps j recorded with action a. The expected counts follow from
the same regressors, one output per feature,

    Ψ(s) = f(s) + γ Σ_a π(a|s) Ê_a[Ψ(s')](s),     f_θ = Σ_s start(s) Ψ(s),

which is the exact gradient of Σ start V where predictions are linear in the targets, and an approximation elsewhere.
Convergence is not guaranteed: it is checked, and the number of backups is limited. Trees and nearest neighbours are
better used as averagers (averaging_regressors.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils import get_tags

from messirl._types import Floats
from messirl.dynamics.transition_dataset import Samples, Scale
from messirl.objective import Evaluation

RUNAWAY = 10.0  # times the largest possible value: beyond it, backups diverge


class RefittedModel:
    """Values and expected counts at a reward, by backups with a regressor, warm-started from the last ones."""

    def __init__(
        self, regressor: Any, samples: Samples, table: Floats, discount: float, max_backups: int, tol: float
    ) -> None:
        self._scale = Scale.of(samples.points)
        self._points = self._scale(samples.points)
        self._moves = list(samples.moves())
        self._terminal, self.start = samples.terminal, samples.start
        self.table, self._discount = table, discount
        self._max_backups, self._tol = max_backups, tol
        self._one = regressor
        self._many = regressor if get_tags(regressor).target_tags.multi_output else MultiOutputRegressor(regressor)
        self._values = np.zeros(len(table))
        self._counts = np.zeros_like(table)
        self.capped = 0  # iterations that ended because of max_backups, not because of their tolerance

    def ahead(self, targets: Floats, at: Floats | None = None) -> Floats:
        """Return Ê_a of targets (N,) or (N, d), at scaled states `at` or at the samples, (A, n) or (A, n, d)."""
        base = self._one if targets.ndim == 1 else self._many
        at = self._points if at is None else at
        out = []
        for action, (source, target) in enumerate(self._moves):
            predicted = np.asarray(clone(base).fit(self._points[source], targets[target]).predict(at), dtype=np.float64)
            predicted = predicted.reshape(len(at), *targets.shape[1:])
            if not np.isfinite(predicted).all():
                raise ValueError(
                    f"the regressor predicts a value that is not finite for action {action}: use one that averages, "
                    "such as ExtraTreesRegressor, or give more recordings"
                )
            out.append(predicted)
        return np.stack(out)

    def values(self, reward: Floats) -> tuple[Floats, Floats]:
        """Return V (N,) and the policy (N, A)."""

        def backup(values: Floats) -> Floats:
            return np.where(self._terminal, reward, logsumexp(reward + self._discount * self.ahead(values), axis=0))

        largest = float(np.abs(reward).max()) + np.log(len(self._moves))
        self._values = self._iterate(backup, np.where(self._terminal, reward, self._values), largest)
        q = reward + self._discount * self.ahead(self._values)
        return self._values, np.exp(q - logsumexp(q, axis=0)).T

    def expected_counts(self, policy: Floats) -> Floats:
        """Return f_θ, (d,)."""
        ends = self._terminal[:, None]

        def backup(counts: Floats) -> Floats:
            following = np.einsum("na,and->nd", policy, self.ahead(counts))
            return np.where(ends, self.table, self.table + self._discount * following)

        self._counts = self._iterate(backup, self._counts, float(np.abs(self.table).max()))
        return np.asarray(self.start @ self._counts)

    def q(self, points: Floats, reward: Floats) -> Floats:
        """Return Q at any states that are not terminal, (n, A), from the last values."""
        ahead = self.ahead(self._values, self._scale(points))
        return np.asarray((reward + self._discount * ahead).T)

    def _iterate(self, backup: Callable[[Floats], Floats], at: Floats, largest: float) -> Floats:
        """Return the fixed point of `backup`, whose one-step gain is at most `largest`."""
        possible = max(largest, 1.0) / (1.0 - self._discount)
        limit = RUNAWAY * possible + float(np.abs(at).max())
        for _ in range(self._max_backups):
            ahead = backup(at)
            gap, at = float(np.abs(ahead - at).max()), ahead
            size = float(np.abs(at).max())
            if size > limit:
                raise ValueError(
                    f"fitted value iteration diverges with {type(self._one).__name__}: values reach {size:.2g} where "
                    f"none above {possible:.2g} is possible; use a regressor that averages, such as "
                    "ExtraTreesRegressor or KNeighborsRegressor, or a lower discount"
                )
            if gap <= self._tol * (1.0 + size):
                return at
        self.capped += 1
        return at


class RefittedObjective:
    """J(θ) = θᵀf* − Σ start V_θ − ½ θᵀQθ and its gradient."""

    def __init__(self, model: RefittedModel, target: Floats, quadratic: Floats | None) -> None:
        self.model, self.target, self.quadratic = model, target, quadratic

    def __call__(self, theta: Floats) -> Evaluation:
        """Return J and its gradient at θ."""
        values, policy = self.model.values(self.model.table @ theta)
        counts = self.model.expected_counts(policy)
        value = float(theta @ self.target) - float(self.model.start @ values)
        return penalised(theta, value, self.target, counts, self.quadratic)


def penalised(theta: Floats, value: float, target: Floats, counts: Floats, quadratic: Floats | None) -> Evaluation:
    """Return L and its gradient f* − f_θ, minus the quadratic penalty and its gradient."""
    if quadratic is None:
        return Evaluation(value, target - counts, counts, None)
    pull = quadratic @ theta
    return Evaluation(value - 0.5 * float(theta @ pull), target - counts - pull, counts, None)
