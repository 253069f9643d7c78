"""Apprenticeship learning: policies that do as well as the experts, found without estimating a reward.

Such policies give some actions probability zero, and an expert who takes one of them would make the score −∞. Scores
therefore assume a lapse: with a small probability the policy takes any allowed action.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from messirl._parameters import default
from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.estimators._best_response import BestResponses, mixed_policy
from messirl.estimators._policy_base import PolicyEstimator
from messirl.estimators.uniform import uniform_rows
from messirl.planning import log_likelihood, visits


@dataclass(eq=False, repr=False, kw_only=True)
class ApprenticeshipEstimator(PolicyEstimator):
    """A policy that was found without a reward.

    Parameters
    ----------
    lapse : float
        Scores are those of a policy that takes a uniformly random allowed action with this probability, and otherwise
        follows `policy_`. With 0, a trajectory that `policy_` never takes scores −inf.

    Attributes
    ----------
    feature_counts_ : array (d,)
        Expected feature counts of the policy.
    """

    _arrays: ClassVar[tuple[str, ...]] = ("policy_", "start_", "feature_counts_")
    _facts: ClassVar[tuple[str, ...]] = ("converged_",)

    lapse: float = default("lapse")

    def _log_likelihood(self, trajectories: Trajectories) -> Floats:
        return log_likelihood(self.mdp_, with_lapses(self.mdp_, self.policy_, self.lapse), trajectories)

    def _set_fitted(self, mdp: MDP, start: Floats, policy: Floats) -> None:
        self.mdp_, self.start_, self.policy_ = mdp, start, policy
        self.feature_counts_ = visits(mdp, policy, start=start, steps=mdp.state_action).counts(mdp)

    def _restore_fitted(self, parts: Any) -> None:
        self._check_shapes(self.mdp_.policy_shape, "policy_")
        self._check_shapes((self.mdp_.n_states,), "start_")
        self._check_shapes((self.mdp_.n_features,), "feature_counts_")


@dataclass(eq=False, repr=False, kw_only=True)
class PolicyMixtureEstimator(ApprenticeshipEstimator):
    """A mixture of policies, each optimal for some reward.

    Attributes
    ----------
    policy_ : array (S, A), or (H − 1, S, A) with a horizon
        The Markov policy whose visits and feature counts are those of the mixture.
    policies_ : array (k, S, A), or (k, H − 1, S, A) with a horizon
        The policies in the order in which they were found; the first is that of maximum entropy.
    weights_ : array (k,)
        The weight of each in the mixture.
    policy_counts_ : array (k, d)
        The expected feature counts of each.
    """

    _arrays: ClassVar[tuple[str, ...]] = ("policies_", "weights_", "policy_counts_")

    def _mix(self, found: BestResponses, weights: Floats) -> None:
        self.policies_, self.weights_, self.policy_counts_ = found.policies, weights, found.counts
        self._set_fitted(found.mdp, found.start, mixed_policy(found.mdp, self.policies_, weights, found.start))

    def _restore_fitted(self, parts: Any) -> None:
        super()._restore_fitted(parts)
        k = len(self.weights_)
        self._check_shapes((k,), "weights_")
        self._check_shapes((k, *self.mdp_.policy_shape), "policies_")
        self._check_shapes((k, self.mdp_.n_features), "policy_counts_")


def with_lapses(mdp: MDP, policy: Floats, lapse: float) -> Floats:
    """Return (1 − lapse) π + lapse · uniform over the allowed actions."""
    return np.asarray((1.0 - lapse) * policy + lapse * uniform_rows(mdp))
