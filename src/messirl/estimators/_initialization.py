"""Where the search for θ begins: at a given θ, at random, or at zero; with discount=1 where values are finite.

Who fits nearly the same many times may let a search begin at a fit that is `Nearby`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from messirl._checks import numbers
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
class Nearby:
    """A fit to nearly the same, as a `theta_init` that changes how long a search takes, and not what it finds.

    The search begins there if J is concave, and finite there; else as if nothing were given. It is for fits whose
    scores alone are looked at: which weights the penalty holds is not asked.

    theta : (d,)
    bend : (d, d) how much its likelihood bends there, −∇²L
    """

    theta: Floats
    bend: Floats

    def serves(self, objective: Objective, bound: float) -> bool:
        """Whether the search for the top of an objective may begin there."""
        within = bool((np.abs(self.theta) < bound).all())
        return within and objective.concave and bool(np.isfinite(objective(self.theta).value))

    def curvature(self, objective: Objective) -> Floats:
        """About how much an objective bends there, penalty included, (d, d)."""
        return self.bend if objective.quadratic is None else self.bend + objective.quadratic


def bend_at(likelihood: Objective, theta: Floats) -> Floats | None:
    """How much a likelihood bends at θ, −∇²L (d, d); None where that is dear to know."""
    n, d = likelihood.mdp.n_states, likelihood.mdp.n_features
    if d > FEW and not (likelihood.bends_exactly and n * d <= MEMORY_SIZE):
        return None
    return curvature_at(likelihood, theta)


def curvature_at(objective: Objective, theta: Floats, *, by_differences: bool = True) -> Floats | None:
    """−∇²J at θ, (d, d); None where it is not finite, or known by differences only and these are not wanted."""
    try:
        found = -objective.hessian(theta, by_differences=by_differences)
    except NoFiniteValue:
        return None
    return found if np.isfinite(found).all() else None


def first_theta(mdp: MDP, objective: Objective, bound: float, given: Any = None, seed: Any = None) -> Floats:
    """θ to begin at, (d,): `given`, an array, "random" or `Nearby`; else zeros, or a θ at which values are finite."""
    if isinstance(given, Nearby):
        if given.serves(objective, bound):
            return given.theta
        given = None
    if isinstance(given, str):
        if given != "random":
            raise ValueError(f"theta_init={given!r}: give an array, 'random' or None for zeros")
        drawn = random_source(seed).normal(size=mdp.n_features)
        return np.asarray(np.clip(drawn, -bound, bound))
    if given is not None:
        theta = numbers("theta_init", given)
        if theta.shape != (mdp.n_features,) or not np.isfinite(theta).all():
            raise ValueError(f"theta_init must be {mdp.n_features} finite numbers, one per feature")
        if np.abs(theta).max() > bound:
            raise ValueError(f"theta_init goes up to {np.abs(theta).max():g}, beyond theta_max={bound:g}")
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
    """Why no θ in the box gives finite values: the units of the features, or the features themselves."""
    wanted = None if bound == np.inf else feasible_theta(mdp, np.inf, objective.planner.model.live)
    if wanted is not None and np.isfinite(objective(wanted).value):
        unit, large = feature_spread(mdp), np.flatnonzero(np.abs(wanted) > bound)
        first = int(large[np.argmax(np.abs(wanted[large]))]) if large.size else int(np.argmax(np.abs(wanted)))
        return (
            f"with theta_max={bound:g} no step can cost enough for the values to be finite (discount=1): it "
            f"takes a weight of {wanted[first]:.3g} on {mdp.feature_label(first)}, whose values spread by "
            f"{unit[first]:.2g}. Give that feature in a smaller unit, so that its values are larger, or raise "
            "theta_max"
        )
    return (
        "no theta was found for which the model has finite values: with discount=1 every step on a cycle must be "
        "able to cost something; add a constant feature, or use a discount below 1"
    )


def _no_value_at(theta: Floats, mdp: MDP, objective: Objective, bound: float) -> str:
    """Which features to make more negative, judged by a θ that works."""
    found = feasible_theta(mdp, bound, objective.planner.model.live)
    text = "at theta_init the model has no finite value: a trajectory that goes on and on is worth infinitely much"
    if found is None:
        return f"{text}; leave theta_init out"
    lower = np.flatnonzero(found < theta)
    change, which = ("more negative", lower) if lower.size else ("larger", np.flatnonzero(found > theta))
    return (
        f"{text}; make the weights of {some_features(mdp, which.tolist())} {change} ({found[which[0]]:.3g} for the "
        "first is enough), or leave theta_init out"
    )
