"""Ng and Russell 2000: a reward under which the experts are ahead of all policies found, by a linear programme.

This is the version of their section 5, for sampled trajectories and features. With f* the experts' counts and f_j those
of the policies found, each round solves

    max Σ_j p(θᵀ(f* − f_j))  such that  |θ_i| ≤ θ_max,      p(x) = x for x ≥ 0, else 2x

and adds the best policy for that θ; a policy that is found again counts once more. The search ends when no policy is
better than the experts under θ, or when no θ in the box is better than θ = 0. The second case is usual if experts make
errors, since no reward then makes them optimal. The result is the θ, of all rounds, with the smallest regret of the
experts.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from messirl._parameters import default
from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories, TrajectoriesLike, as_trajectories
from messirl.estimators._apprenticeship import with_lapses
from messirl.estimators._best_response import BestResponses, best_policy
from messirl.estimators._input_checks import check_bounded, mean_counts, read_sets
from messirl.estimators._reward_base import RewardEstimator
from messirl.estimators.abbeel_ng import rounding
from messirl.planning import log_likelihood, visits

OPTIMAL, NOTHING = "no policy is better than the experts", "no reward puts the experts ahead"
ALL = "max_policies policies were found"
WORSE = 2.0  # weight of being behind a policy, relative to being ahead of it


@dataclass(eq=False, repr=False, kw_only=True)
class NgRussell(RewardEstimator):
    """Inverse reinforcement learning by linear programming, from sampled trajectories.

    It assumes that the experts are optimal, and finds a reward under which they are ahead of other policies. It needs
    the dynamics, and the states of the experts' trajectories; actions only with state-action features. It does not use
    unlabelled trajectories.

    Parameters
    ----------
    theta_max : float
        Bound on every weight; it sets the scale of θ, on which the policy does not depend.
    max_policies : int
        Maximum number of policies.
    lapse : float
        Scores are those of a policy that takes a uniformly random allowed action with this probability, and otherwise
        follows `policy_`.

    Attributes
    ----------
    policy_ : array (S, A), or (H − 1, S, A) with a horizon
        The best policy for the reward; actions that are equally good are equally likely.
    feature_counts_ : array (d,)
        Expected feature counts of the policy.
    regret_ : float
        max_π θᵀf_π − θᵀf*, the lead of the best policy over the experts under θ; below 0 if their trajectories were
        lucky.
    n_iter_ : int
        Number of rounds.
    converged_ : bool
        Whether the search ended before `max_policies`.
    termination_ : str
        Reason why the search ended.

    References
    ----------
    Ng, Russell: Algorithms for Inverse Reinforcement Learning, ICML 2000, section 5.

    Examples
    --------
    Six states in a row; the experts go to the right end and stay.

    >>> import numpy as np
    >>> from messirl import MDP, sample
    >>> from messirl.estimators import NgRussell
    >>> right = np.minimum(np.arange(6) + 1, 5)
    >>> left = np.maximum(np.arange(6) - 1, 0)
    >>> moves = np.stack([np.eye(6)[left], np.eye(6)[right]], axis=1)
    >>> mdp = MDP(moves, features=np.linspace(0, 1, 6)[:, None], discount=0.9, start=np.eye(6)[0])
    >>> always_right = np.tile([0.0, 1.0], (6, 1))
    >>> model = NgRussell().fit(mdp, sample(mdp, always_right, 1, length=300, random_state=0))
    >>> model.theta_, model.termination_
    (array([1.]), 'no policy is better than the experts')
    """

    _arrays: ClassVar[tuple[str, ...]] = ("start_", "feature_counts_")
    _facts: ClassVar[tuple[str, ...]] = ("regret_", "n_iter_", "converged_", "termination_")

    theta_max: float = default("theta_max", "NgRussell")
    max_policies: int = default("max_policies")
    lapse: float = default("lapse")

    def fit(self, mdp: MDP, expert: TrajectoriesLike, unlabelled: Any = None) -> Self:
        """Fit to the counts of the expert's trajectories; `unlabelled` is not used."""
        expert, unlabelled = as_trajectories(expert, "expert"), as_trajectories(unlabelled, "unlabelled")
        self._check_arguments()
        bound, most = self.theta_max, self.max_policies
        start = read_sets("NgRussell", mdp, expert)
        check_bounded("NgRussell", mdp)
        target, found = mean_counts(mdp, expert), BestResponses(mdp, start)
        kept, regret, reason, rounds = np.zeros(mdp.n_features), None, ALL, 0
        while reason == ALL and rounds < most:
            before, rounds = found.counts, rounds + 1
            theta = largest_lead_theta(target - before, bound)
            if not _lead(target - before, theta) > 1e-9 * bound * float(np.abs(target - before).sum()):
                reason = NOTHING
                break
            best, none = found.add(theta), rounding(before, target)
            behind = float(theta @ (best - target))
            if regret is None or behind < regret:
                kept, regret = theta, behind
            if behind <= none * bound * mdp.n_features:
                reason = OPTIMAL
        self.start_, self.regret_, self.n_iter_ = found.start, regret or 0.0, rounds
        self.termination_, self.converged_ = reason, reason != ALL
        self._set_fitted(mdp, kept)
        self._set_policy()
        self.feature_counts_ = visits(mdp, self.policy_, start=self.start_).counts(mdp)
        if not self.converged_:
            warnings.warn(f"NgRussell did not converge: {reason}. Raise max_policies", ConvergenceWarning, stacklevel=2)
        return self

    def _set_policy(self) -> None:
        self.policy_ = best_policy(self.mdp_, self.reward_)

    def _log_likelihood(self, trajectories: Trajectories) -> Floats:
        return log_likelihood(self.mdp_, with_lapses(self.mdp_, self.policy_, self.lapse), trajectories)

    def _restore_fitted(self, parts: Any) -> None:
        super()._restore_fitted(parts)
        self._check_shapes((self.mdp_.n_states,), "start_")
        self._check_shapes((self.mdp_.n_features,), "feature_counts_")
        self._set_policy()


def _lead(ahead: Floats, theta: Floats) -> float:
    """Return Σ_j p(θᵀ ahead_j), at most 0 for θ = 0 and for a θ under which all policies are equal."""
    by = ahead @ theta
    return float(np.minimum(by, WORSE * by).sum())


def largest_lead_theta(ahead: Floats, bound: float) -> Floats:
    """Return the θ (d,), |θ_i| ≤ bound, that maximises Σ_j p(θᵀ ahead_j), for the gaps f* − f_j (k, d).

    p is the minimum of two lines, so the programme maximises Σ_j z_j with z_j ≤ θᵀ ahead_j and z_j ≤ 2 θᵀ ahead_j.
    """
    k, d = ahead.shape
    size = max(float(np.abs(ahead).max()), np.finfo(float).tiny)
    one = sp.eye_array(k)
    limits = sp.vstack([sp.hstack([sp.csr_array(-slope * ahead / size), one]) for slope in (1.0, WORSE)])
    solved = linprog(
        np.append(np.zeros(d), -np.ones(k)),
        A_ub=limits,
        b_ub=np.zeros(2 * k),
        bounds=[(-1.0, 1.0)] * d + [(None, None)] * k,
        method="highs",
    )
    if solved.status != 0:
        raise ValueError(f"the linear programme of NgRussell was not solved: {solved.message}")
    return np.asarray(bound * solved.x[:d])
