"""Methods that find a reward, r_θ = features @ θ, and the policy that follows from it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from messirl._types import Floats
from messirl.estimators.policy import PolicyEstimator
from messirl.problem.mdp import MDP


class RewardEstimator(PolicyEstimator):
    """A policy that follows from a reward r = f θ, linear in the features.

    Attributes
    ----------
    theta_ : array (d,)
        One weight per feature.
    reward_ : array (S,), or (S, A) with state-action features
        `mdp_.features @ theta_`.
    n_features_in_ : int
        The number of features, d.
    """

    _arrays: ClassVar[tuple[str, ...]] = ("theta_",)

    theta_: Floats
    reward_: Floats

    def _learnt(self, mdp: MDP, theta: Floats) -> None:
        self.mdp_, self.n_features_in_ = mdp, mdp.n_features
        self.theta_, self.reward_ = theta, mdp.reward(theta)

    def _revive(self, parts: dict[str, Any]) -> None:
        self._check_shapes((self.mdp_.n_features,), "theta_")
        self._learnt(self.mdp_, self.theta_)

    def _check_shapes(self, shape: tuple[int, ...], *names: str) -> None:
        """Refuse fitted arrays, read from a file, that do not have this shape or are not finite."""
        for name in names:
            array = getattr(self, name, None)
            if array is not None and (array.shape != shape or not np.isfinite(array).all()):
                raise ValueError(f"its {name} does not fit its MDP")
