"""Weighted pooling: methods that fit to the experts and, with a lower weight, to unlabelled trajectories."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy.typing as npt

from messirl._parameters import default
from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.estimators._initialization import WarmStart
from messirl.estimators._maxent_base import MaximumEntropy
from messirl.estimators._search import PreparedFit, search_beyond_saddles, search_twice
from messirl.estimators._training_data import TrainingData, training_objective
from messirl.objective import Evaluation, Objective
from messirl.optim.box_search import Result
from messirl.optim.lockstep import EvaluationRequest


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

    def _prepare_pooled(
        self,
        mdp: MDP,
        data: TrainingData,
        counts: Floats | None,
        quadratic: Floats | None,
        weight: npt.ArrayLike | None,
    ) -> PreparedFit:
        """Return the fit to the experts and, with `unlabelled_weight`, to the others, up to its search."""
        light, some = float(self.unlabelled_weight), data.expert
        if light > 0.0 and data.trajectories is not None:
            some = data.trajectories
        objective = training_objective(
            mdp,
            data,
            self.likelihood_,
            entropy=self.entropy,
            weight=weight,
            light=light,
            counts=counts,
            tilted=self.solver != "paper",
        ).regularised(quadratic, self.theta_prior)
        start = self._warm_start(mdp, objective)
        chosen = self.theta_init is not None and not isinstance(self.theta_init, WarmStart)  # by the user
        how = search_twice if chosen and self.solver == "lbfgs" else search_beyond_saddles

        def search() -> Generator[EvaluationRequest, Evaluation, tuple[Objective, Result]]:
            return objective, (yield from how(objective, start, self._settings))

        return PreparedFit(mdp, some, objective, start, search)
