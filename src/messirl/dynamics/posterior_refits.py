"""Uncertainty of a fit that comes from estimated dynamics: refits on draws of p, and intervals over them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from messirl._checks import check_fraction
from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.dynamics.estimated import EstimatedMDP
from messirl.parallel import run


@dataclass(frozen=True)
class PosteriorSpread:
    """Fits on n draws of the dynamics, with means, standard deviations and intervals.

    Attributes
    ----------
    theta : array (n, d)
        The weights of each fit.
    policy : array (n, S, A), (n, H − 1, S, A) with a horizon, or None
        The policy of each fit; None with goals.
    """

    theta: Floats
    policy: Floats | None

    @property
    def theta_mean(self) -> Floats:
        """The mean of each weight over the fits, (d,)."""
        return np.asarray(self.theta.mean(axis=0))

    @property
    def theta_sd(self) -> Floats:
        """The standard deviation of each weight over the fits, (d,)."""
        return np.asarray(self.theta.std(axis=0, ddof=1))

    def theta_interval(self, level: float = 0.9) -> Floats:
        """Return the lower and upper ends of each weight's interval, (2, d)."""
        return _interval(self.theta, level)

    @property
    def policy_mean(self) -> Floats:
        """The mean of each probability over the fits, (S, A) or (H − 1, S, A)."""
        return np.asarray(self._policies().mean(axis=0))

    @property
    def policy_sd(self) -> Floats:
        """The standard deviation of each probability over the fits, (S, A) or (H − 1, S, A)."""
        return np.asarray(self._policies().std(axis=0, ddof=1))

    def policy_interval(self, level: float = 0.9) -> Floats:
        """Return the lower and upper ends of each probability's interval, (2, S, A) or (2, H − 1, S, A)."""
        return _interval(self._policies(), level)

    def _policies(self) -> Floats:
        if self.policy is None:
            raise ValueError("fits with goals have one policy per goal: only theta is kept")
        return self.policy


def posterior_spread(
    estimated: EstimatedMDP,
    estimator: Any,
    expert: Trajectories,
    unlabelled: Trajectories | None = None,
    n: int = 20,
    random_state: Any = None,
    executor: Any = None,
) -> PosteriorSpread:
    """Refit on draws of the dynamics from their posterior, one refit per draw.

    The trajectories stay the same, so the spread is the uncertainty that comes from p alone.
    """
    if n == 1:
        raise ValueError("n=1: a spread needs at least 2 draws")
    work = functools.partial(_refitted, estimator, expert, unlabelled)
    thetas, policies = zip(*run(work, estimated.draws(n, random_state), executor), strict=True)
    return PosteriorSpread(np.stack(thetas), None if policies[0] is None else np.stack(policies))


def _refitted(
    estimator: Any, expert: Trajectories, unlabelled: Trajectories | None, mdp: MDP
) -> tuple[Floats, Floats | None]:
    fit = clone(estimator).fit(mdp, expert, unlabelled)
    return fit.theta_, None if isinstance(fit.policy_, Mapping) else fit.policy_


def _interval(draws: Floats, level: float) -> Floats:
    check_fraction("level", level)
    return np.asarray(np.quantile(draws, [(1.0 - level) / 2.0, (1.0 + level) / 2.0], axis=0))
