"""Whole fits on the 16² grid: time against dense NumPy, and evaluations against SciPy's L-BFGS-B.

Evaluations are counted until one comes within 1e-6 · |best| of the best value known, that of the better of the two
solvers given 2000 iterations. Points tried in a line search count, and may be the one that comes near enough.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from benchmarks import dense
from benchmarks.problems import dense_rows, grid, true_theta
from benchmarks.table import Row, seconds
from benchmarks.timing import compare
from messirl import MDP, MESSI, Trajectories, feature_counts, sample, soft_policy
from messirl.objective import Objective
from messirl.optim.lbfgs import lbfgs
from messirl.similarity import RBF, penalty_matrix

SIDE, HORIZON = 16, 100
LAMBDA0, THETA_MAX = 5.0, 500.0
N_EXPERT, N_UNLABELLED = 50, 200
GAP = 1e-6
MEMORY = 20
MAX_ITER, LONG = 600, 2000
SEEDS = range(3)


def problem(seed: int, *, discount: float, horizon: int | None) -> tuple[MDP, Trajectories, Trajectories]:
    """The grid with an expert's trajectories and others: half the expert's, half of one who wants something else.

    They begin anywhere, so that every feature is seen; the model begins where they do.
    """
    mdp = grid(SIDE, discount=discount, horizon=horizon)
    everywhere = np.full(mdp.n_states, 1.0 / mdp.n_states)
    half = N_UNLABELLED // 2
    good, other = (
        sample(mdp, soft_policy(mdp, mdp.reward(true_theta(who))), n, HORIZON, seed, start=everywhere)
        for who, n in ((seed, N_EXPERT + half), (seed + 1000, half))
    )
    return mdp.replace(start=None), good[:N_EXPERT], good[N_EXPERT:] + other


def rows() -> Iterator[Row]:
    yield from whole_fit()
    yield from solvers()


# -- one fit ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DensePoint:
    value: float
    gradient: np.ndarray


def whole_fit() -> Iterator[Row]:
    """MESSI.fit against the same solver on the same objective, evaluated by dense NumPy."""
    mdp, expert, unlabelled = problem(0, discount=0.99, horizon=HORIZON)
    table = dense_rows(mdp)
    start = np.bincount(expert.first, minlength=mdp.n_states) / len(expert)
    model = MESSI(RBF("median"), objective="counts", lambda0=LAMBDA0, theta_max=THETA_MAX, max_iter=MAX_ITER)

    def ours():
        return model.fit(mdp, expert, unlabelled)

    def other():
        counts = feature_counts(mdp, expert + unlabelled)
        target = counts[: len(expert)].mean(axis=0)
        quadratic = model.lambda0 / model.theta_max * penalty_matrix(counts, RBF("median"))

        def evaluate(theta):
            value, _, visits = dense.evaluate(table, mdp.features @ theta, start, mdp.discount, HORIZON)
            pull = quadratic @ theta
            return DensePoint(
                float(theta @ target - start @ value - 0.5 * theta @ pull),
                target - visits @ mdp.features - pull,
            )

        tol = model.tol * max(1.0, float(np.abs(target).max()))
        return lbfgs(evaluate, np.zeros(mdp.n_features), bound=model.theta_max, max_iter=model.max_iter, tol=tol)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(ours().objective_, other().point.value, rtol=1e-7)
        times = compare(ours, other, rounds=3)
    yield Row(
        f"MESSI.fit, {SIDE}², {model.history_.evaluations[-1]} evaluations: dense NumPy, same solver",
        seconds(times.ours),
        seconds(times.other),
        times.ratio,
    )


# -- evaluations until the optimum -------------------------------------------------------------------------------


class Counted:
    """A function that remembers the values it gave."""

    def __init__(self, function: Callable[[np.ndarray], Any]) -> None:
        self.function = function
        self.values: list[float] = []

    def __call__(self, theta: np.ndarray) -> Any:
        point = self.function(theta)
        self.values.append(point.value)
        return point

    def until(self, value: float) -> float:
        """Evaluations made until one was at least `value`; inf if none was."""
        near = np.flatnonzero(np.array(self.values) >= value)
        return float(near[0] + 1) if near.size else np.inf


def run_ours(function: Callable[[np.ndarray], Any], d: int, bound: float, max_iter: int) -> Counted:
    counted = Counted(function)
    lbfgs(counted, np.zeros(d), bound=bound, max_iter=max_iter, tol=1e-10)
    return counted


def run_scipy(function: Callable[[np.ndarray], Any], d: int, bound: float, max_iter: int) -> Counted:
    counted = Counted(function)

    def negated(theta):
        point = counted(theta)
        return -point.value, -point.gradient

    minimize(
        negated,
        np.zeros(d),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-bound, bound)] * d,
        options={"maxcor": MEMORY, "maxiter": max_iter, "maxfun": 20 * max_iter, "ftol": 0.0, "gtol": 1e-10},
    )
    return counted


def solvers() -> Iterator[Row]:
    """Three objectives on endless and finite problems, three sets of trajectories each."""
    cases = (("penalty", True, THETA_MAX), ("‖θ‖∞ <= 5", False, 5.0), ("neither", False, THETA_MAX))
    for ending, discount, horizon in (("endless", 0.95, None), (f"horizon {HORIZON}", 1.0, HORIZON)):
        for name, penalised, bound in cases:
            ours, other = [], []
            for seed in SEEDS:
                mdp, expert, unlabelled = problem(seed, discount=discount, horizon=horizon)
                counts = feature_counts(mdp, expert + unlabelled)
                quadratic = LAMBDA0 / THETA_MAX * penalty_matrix(counts, RBF("median")) if penalised else None
                best = -np.inf
                runs = []
                for run in (run_ours, run_scipy):
                    objective = Objective.from_trajectories(mdp, expert, quadratic=quadratic)
                    runs.append(run(objective, mdp.n_features, bound, MAX_ITER))
                    best = max(best, *run(objective, mdp.n_features, bound, LONG).values)
                for kept, counted in zip((ours, other), runs, strict=True):
                    kept.append(counted.until(best - GAP * abs(best)))
            middle = np.median(ours), np.median(other)
            yield Row(
                f"evaluations to a gap of 1e-6, {ending}, {name}: L-BFGS-B",
                _spread(ours),
                _spread(other),
                float(middle[1] / middle[0]) if np.isfinite(middle).all() else None,
            )


def _spread(evaluations: list[float]) -> str:
    """Median, and the smallest and largest."""
    ordered = (min(evaluations), float(np.median(evaluations)), max(evaluations))
    low, middle, high = (f"{x:.0f}" if np.isfinite(x) else "never" for x in ordered)
    return middle if low == high else f"{middle} ({low} to {high})"
