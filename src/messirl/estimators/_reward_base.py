"""Base class of the methods that estimate a reward, r_θ = features @ θ, and the policy that follows from it."""

from __future__ import annotations

from typing import Any, ClassVar

from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.estimators._policy_base import PolicyEstimator


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

    def _set_fitted(self, mdp: MDP, theta: Floats) -> None:
        self.mdp_, self.n_features_in_ = mdp, mdp.n_features
        self.theta_, self.reward_ = theta, mdp.reward(theta)

    def _restore_fitted(self, parts: Any) -> None:
        self._check_shapes((self.mdp_.n_features,), "theta_")
        self._set_fitted(self.mdp_, self.theta_)
