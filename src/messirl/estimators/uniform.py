"""The policy that takes every allowed action alike: what chance is, and what every other method is measured against."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from messirl._types import Floats
from messirl.planning import log_likelihood
from messirl.problem.mdp import MDP
from messirl.problem.trajectories import Trajectories


class UniformPolicy(BaseEstimator):
    """Every allowed action alike. `fit` takes from the trajectories only whether they have goals."""

    converged_ = True

    def fit(self, mdp: MDP, expert: Trajectories) -> Self:
        """Make `policy_` for the MDP."""
        self.mdp_, self.policy_ = mdp, uniform_policy(mdp, expert)
        return self

    def score(self, trajectories: Trajectories) -> float:
        """Mean log-probability per step."""
        return uniform_score(self.mdp_, trajectories)


def uniform_score(mdp: MDP, trajectories: Trajectories) -> float:
    """Log-probability per step under the policy that takes every allowed action alike."""
    steps = int((trajectories.lengths - 1).sum())
    return float(log_likelihood(mdp, uniform_policy(mdp, trajectories), trajectories).sum() / max(steps, 1))


def uniform_policy(mdp: MDP, trajectories: Trajectories) -> Any:
    """Every allowed action alike: as `policy_`, a mapping where the trajectories have goals."""
    alike: Floats = mdp.allowed / np.maximum(mdp.allowed.sum(axis=1, keepdims=True), 1)
    if trajectories.goals is not None:
        return dict.fromkeys(np.unique(trajectories.goals).tolist(), alike)
    return alike if mdp.horizon is None else np.broadcast_to(alike, (mdp.horizon - 1, *alike.shape))
