"""Weighted pooling: methods that fit to the experts and, with a lower weight, to unlabelled trajectories."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from messirl._parameters import default
from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.estimators._initialization import Nearby, first_theta
from messirl.estimators._lockstep import Question
from messirl.estimators._maxent_base import MaximumEntropy
from messirl.estimators._saddle_point import upward
from messirl.estimators._streaming import Together
from messirl.objective import Evaluation, Objective, checked_weights
from messirl.optim.box_search import ASKED, RISING, Result, continued

SADDLES = 3  # saddle points that a search leaves, at most


@dataclass(eq=False, repr=False, kw_only=True)
class PooledEstimator(MaximumEntropy):
    """Base class of estimators with one θ for experts and, by weighted pooling, unlabelled trajectories.

    Parameters
    ----------
    unlabelled_weight : float
        Weight of an unlabelled trajectory in the objective, where an expert's has the weight 1; 0 leaves them out.
        Above 0, if only one of the two sets has actions, the actions are ignored.
    theta_prior : float, optional
        Standard deviation of a normal prior of every weight, in units of one over the spread of its feature. A value
        of about 10 has little effect on weights that the data determine, and keeps the others from the bound. None
        means no prior.
    """

    unlabelled_weight: float = default("unlabelled_weight")
    theta_prior: float | None = default("theta_prior")

    def _check_arguments(self) -> None:
        super()._check_arguments()
        if self.theta_prior is not None and self.solver == "paper":
            raise ValueError("`theta_prior` cannot be combined with solver='paper' (Alg. 1): use solver='lbfgs'")

    def _search(
        self,
        mdp: MDP,
        expert: Trajectories,
        everyone: Trajectories | Together,
        counts: Floats | None,
        quadratic: Floats | None,
        weight: npt.ArrayLike | None,
    ) -> Generator[Question, Evaluation, tuple[Trajectories, Objective, Floats, Result]]:
        """Search θ for the experts and, with `unlabelled_weight`, for the unlabelled trajectories in `everyone`.

        Returns the trajectories in the objective, the objective, the initial θ, and the result of the search.
        """
        light, some, n_expert = float(self.unlabelled_weight), expert, len(expert)
        pooled = light > 0.0 and len(everyone) > n_expert
        own = np.ones(n_expert) if weight is None or not pooled else checked_weights(weight, n_expert)
        if pooled and isinstance(everyone, Together):
            known = counts if self.likelihood_ == "counts" else None
            how: dict[str, Any] = {"entropy": self.entropy, "tilted": self.solver != "paper"}
            objective = everyone.objective(mdp, own, light, counts=known, quadratic=quadratic, **how)
        else:
            if pooled:
                assert isinstance(everyone, Trajectories)
                some, weight = everyone, np.concatenate([own, np.full(len(everyone) - n_expert, light)])
            known = None if counts is None else counts[: len(some)]
            objective = self._objective(mdp, some, known, quadratic, weight, n_expert)
        objective = objective.penalised(objective.with_prior(quadratic, self.theta_prior))
        theta = self._theta_start(mdp, objective)
        result = yield from self._to_a_summit(objective, theta)
        if self._begins_elsewhere and result.converged and not objective.concave:
            result = yield from self._or_from_default(objective, result)
        return some, objective, theta, result

    @property
    def _begins_elsewhere(self) -> bool:
        """True if the user gave an initial θ."""
        return self.theta_init is not None and not isinstance(self.theta_init, Nearby) and self.solver == "lbfgs"

    def _or_from_default(self, objective: Objective, found: Result) -> Generator[Question, Evaluation, Result]:
        """Search from the default start too, and return the better optimum: there may be several."""
        left = self.max_iter - found.iterations
        if left <= 0:
            return found
        begin = first_theta(objective.mdp, objective, self._bound)
        other = yield from self._optimise(objective, begin, left, continued(self.callback, found))
        if other.stopped:
            return replace(found.at_a_cost_of(other), reason=ASKED, converged=False)
        rise = other.point.value - found.point.value
        if other.converged and rise > RISING * (1.0 + abs(found.point.value)):
            return other.after(found)
        return found.at_a_cost_of(other)

    def _to_a_summit(self, objective: Objective, theta: Floats) -> Generator[Question, Evaluation, Result]:
        """Search from θ, and continue from saddle points on which the search ends."""
        result = yield from self._optimise(objective, theta, self.max_iter, self.callback)
        for _ in range(SADDLES):
            way = upward(objective, result.theta, self._bound) if result.converged else None
            if way is None:
                break
            result = yield from self._over(objective, result, way)
        return result

    def _over(self, objective: Objective, result: Result, way: Floats) -> Generator[Question, Evaluation, Result]:
        """Continue the search from a saddle point, along a direction in which J rises."""
        sides = [np.clip(result.theta + side * way, -self._bound, self._bound) for side in (0.1, -0.1)]
        begin = max(sides, key=lambda at: objective(at).value)
        left = self.max_iter - result.iterations
        beyond = yield from self._optimise(objective, begin, left, continued(self.callback, result))
        return beyond.after(result)
