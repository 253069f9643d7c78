"""Initial theta of a search: given, random, or zero; with discount=1 a θ at which values are finite.

Repeated fits to similar data may use a `WarmStart`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from messirl._checks import check_numeric_array
from messirl._types import Floats
from messirl.data.feature_scale import feature_spread
from messirl.data.mdp import MDP
from messirl.estimators._convergence_report import some_features
from messirl.objective import Objective
from messirl.optim.box_search import FEW
from messirl.optim.lbfgs_memory import MEMORY_SIZE
from messirl.planning import NoFiniteValue
from messirl.planning.feasible_theta import feasible_theta
from messirl.planning.sampling import random_source


@dataclass(frozen=True, eq=False)
class PathPoint:
    """θ(w), a point of the central path (_central_path.py)."""

    theta: Floats
    weight: float


@dataclass(frozen=True, eq=False)
class WarmStart:
    """An initial θ from a fit to similar data, which changes the time of a search but not its result.

    As `theta_init` of an estimator it is used if J is concave, and finite there; otherwise the default is. It is for
    fits of which only the scores are used: the report does not list weights that the penalty shrinks.

    theta : (d,)
    hessian : (d, d) the Hessian of the negative log-likelihood there, −∇²L; None if it is expensive
    path_point : a point of the central path to it, if the path was followed
    """

    theta: Floats
    hessian: Floats | None = None
    path_point: PathPoint | None = None

    def is_feasible(self, objective: Objective, bound: float) -> bool:
        """Tell whether the search for the maximum of an objective may start there."""
        within = bool((np.abs(self.theta) < bound).all())
        return within and objective.concave and bool(np.isfinite(objective(self.theta).value))

    def curvature(self, objective: Objective) -> Floats | None:
        """Approximate the curvature −∇²J of an objective there, penalty included, (d, d)."""
        return penalised_curvature(self.hessian, objective.quadratic)


def penalised_curvature(hessian: Floats | None, quadratic: Floats | None) -> Floats | None:
    """Return −∇²J (d, d) from −∇²L and the penalty's matrix Q; None if the former is not known."""
    return hessian if hessian is None or quadratic is None else hessian + quadratic


def likelihood_curvature_at(likelihood: Objective, theta: Floats) -> Floats | None:
    """Return the curvature −∇²L of a likelihood at θ, (d, d); None where that is expensive."""
    n, d = likelihood.mdp.n_states, likelihood.mdp.n_features
    if d > FEW and not (likelihood.has_exact_hessian and n * d <= MEMORY_SIZE):
        return None
    return curvature_at(likelihood, theta)


def curvature_at(objective: Objective, theta: Floats, *, by_differences: bool = True) -> Floats | None:
    """Return the curvature −∇²J at θ, (d, d); None if it is not finite, or needs differences that are not wanted."""
    try:
        found = -objective.hessian(theta, by_differences=by_differences)
    except NoFiniteValue:
        return None
    return found if np.isfinite(found).all() else None


def initial_theta(mdp: MDP, objective: Objective, bound: float, given: Any = None, seed: Any = None) -> Floats:
    """Return the initial θ (d,): as `given`, an array, "random" or `WarmStart`; else zeros, or a feasible θ."""
    if isinstance(given, WarmStart):
        if given.is_feasible(objective, bound):
            return given.theta
        given = None
    if isinstance(given, str):
        if given != "random":
            raise ValueError(f"theta_init={given!r}: give an array, 'random' or None for zeros")
        drawn = random_source(seed).normal(size=mdp.n_features)
        return np.asarray(np.clip(drawn, -bound, bound))
    if given is not None:
        theta = check_numeric_array("theta_init", given)
        if theta.shape != (mdp.n_features,) or not np.isfinite(theta).all():
            raise ValueError(f"theta_init must be {mdp.n_features} finite numbers, one per feature")
        if np.abs(theta).max() > bound:
            raise ValueError(f"theta_init has a weight of {np.abs(theta).max():g}, beyond theta_max={bound:g}")
        if mdp.must_end and not np.isfinite(objective(theta).value):
            raise ValueError(_no_value_at(theta, mdp, objective, bound))
        return theta
    theta = np.zeros(mdp.n_features)
    if not mdp.must_end or np.isfinite(objective(theta).value):
        return theta
    found = feasible_theta(mdp, bound, objective.planner.model.live)
    if found is None or not np.isfinite(objective(found).value):
        raise ValueError(_no_start(mdp, objective, bound))
    return found


def _no_start(mdp: MDP, objective: Objective, bound: float) -> str:
    """Explain why no θ in the box gives finite values: the units of the features, or the features themselves."""
    wanted = None if bound == np.inf else feasible_theta(mdp, np.inf, objective.planner.model.live)
    if wanted is not None and np.isfinite(objective(wanted).value):
        unit, large = feature_spread(mdp), np.flatnonzero(np.abs(wanted) > bound)
        first = int(large[np.argmax(np.abs(wanted[large]))]) if large.size else int(np.argmax(np.abs(wanted)))
        return (
            f"with theta_max={bound:g} no step can cost enough for the values to be finite (discount=1): it "
            f"takes a weight of {wanted[first]:.3g} on {mdp.feature_label(first)}, whose values have a spread of "
            f"{unit[first]:.2g}. Give that feature in a smaller unit, so that its values are larger, or raise "
            "theta_max"
        )
    return (
        "no theta was found for which the model has finite values: with discount=1 some weights must give every step "
        "on a cycle a cost; add a constant feature, or use a discount below 1"
    )


def _no_value_at(theta: Floats, mdp: MDP, objective: Objective, bound: float) -> str:
    """Name the features whose weights to change, judged by a feasible θ."""
    found = feasible_theta(mdp, bound, objective.planner.model.live)
    text = "at theta_init the model has no finite value: an endless trajectory has infinite value"
    if found is None:
        return f"{text}; leave theta_init out"
    lower = np.flatnonzero(found < theta)
    change, which = ("more negative", lower) if lower.size else ("larger", np.flatnonzero(found > theta))
    return (
        f"{text}; make the weights of {some_features(mdp, which.tolist())} {change} ({found[which[0]]:.3g} for the "
        "first suffices), or leave theta_init out"
    )
