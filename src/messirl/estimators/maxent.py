"""MaxEnt-IRL (Eq. 4), with the ridge a sceptic asks for: maximise L(θ) − ½ρ‖θ‖²."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from messirl._checks import number
from messirl._defaults import ENTROPY, MAX_ITER, RIDGE, SOLVER, STEP_SIZE, THETA_MAX, TOL
from messirl._types import Floats
from messirl.estimators.maximum_entropy import MaximumEntropy
from messirl.objective import Objective
from messirl.problem.mdp import MDP
from messirl.problem.trajectories import Trajectories
from messirl.similarity.kernels import deviations


class MaxEntIRL(MaximumEntropy):
    """Maximum entropy inverse reinforcement learning.

    ridge : ρ of the penalty ½ρ‖θ‖²
    standardise : measure θ in units of the counts' spread, ½ρ Σ_j (σ_j θ_j)², over the expert's trajectories and, if
        given to `fit`, the unlabelled ones
    theta_max : bound on ‖θ‖∞, None for none
    entropy : "causal", or "noncausal" for the paper's Eq. 3 (needs a horizon)
    solver : "lbfgs" for the optimum, "paper" for the fixed steps of Alg. 1
    """

    def __init__(
        self,
        *,
        ridge: float = RIDGE,
        standardise: bool = False,
        theta_max: float | None = THETA_MAX,
        entropy: str = ENTROPY,
        solver: str = SOLVER,
        step_size: float = STEP_SIZE,
        max_iter: int = MAX_ITER,
        tol: float = TOL,
        theta_init: Any = None,
        random_state: Any = None,
        callback: Any = None,
        warm_start: bool = False,
    ) -> None:
        self.ridge = ridge
        self.standardise = standardise
        super().__init__(
            theta_max, entropy, solver, step_size, max_iter, tol, theta_init, random_state, callback, warm_start
        )

    def fit(
        self,
        mdp: MDP,
        expert: Trajectories,
        unlabelled: Trajectories | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Fit to the expert's trajectories; unlabelled ones serve only to measure the spread for `standardise`."""
        self._check_arguments()
        number("ridge", self.ridge, least=0.0)
        _, counts = self._read(mdp, expert, unlabelled)
        objective = Objective.from_trajectories(
            mdp,
            expert,
            self.entropy,
            self._quadratic(counts),
            sample_weight,
            counts=counts[: len(expert)],
            tilted=self.solver != "paper",
        )
        theta = self._theta_start(mdp, objective)
        result = self._optimise(objective, theta, self.max_iter, self.callback)
        return self._finish(mdp, expert, objective, theta, result)

    def _quadratic(self, counts: Floats) -> Floats | None:
        if self.ridge == 0:
            return None
        if not self.standardise:
            return float(self.ridge) * np.eye(counts.shape[1])
        variance = deviations(counts) ** 2
        if not variance.any():
            raise ValueError(
                "standardise=True, but the counts do not vary: give fit more than one trajectory, expert or unlabelled"
            )
        return float(self.ridge) * np.diag(variance)
