"""MWAL, Syed and Schapire 2007: the game of _zero_sum_game.py, played with multiplicative weights.

Each of T rounds finds the best policy for the reward Σ_i w_i g_i, and then reduces the weights of the rewards under
which it is far ahead of the experts:

    w_i ∝ w_i β^{G_i},      G_i = (g_iᵀ(f_π − f*)/m + 2)/4 ∈ [0, 1],      β = 1/(1 + √(2 ln k / T))

with m the largest possible count and k the number of rows. The mixture of the T policies with equal weights has a value
of at least v* − 4 m (√(2 ln k / T) + ln k / T) in the game (their Theorem 2, by Freund and Schapire's bound).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import softmax

from messirl._parameters import default
from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.data.trajectories import TrajectoriesLike, as_trajectories
from messirl.estimators._apprenticeship import PolicyMixtureEstimator
from messirl.estimators._best_response import BestResponses
from messirl.estimators._input_checks import check_bounded, mean_counts, read_sets
from messirl.estimators._zero_sum_game import largest_count, stakes, value_of, weighed


@dataclass(eq=False, repr=False, kw_only=True)
class MWAL(PolicyMixtureEstimator):
    """Multiplicative weights for apprenticeship learning: a mixture with the largest lead under the worst reward.

    If the signs of the weights are known, the mixture may do better than the experts. It needs the dynamics, and the
    states of the experts' trajectories; actions only with state-action features. It does not use unlabelled
    trajectories.

    Parameters
    ----------
    signs : array (d,) of 1, -1 and 0, optional
        Sign of each weight; 0 if unknown. None: all unknown; the game then minimises the largest deviation from the
        experts' counts, each feature in units of its largest magnitude.
    rounds : int
        T, the number of rounds and of policies in the mixture.

    Attributes
    ----------
    value_ : float
        min_i g_iᵀ(f − f*), the lead of the mixture over the experts under the worst possible reward.
    bound_ : float
        Upper bound on the value of any policy.
    converged_ : bool
        Always true: the number of rounds is fixed. Compare `value_` with `bound_` to judge the result.

    References
    ----------
    Syed, Schapire: A Game-Theoretic Approach to Apprenticeship Learning, NIPS 2007.

    Examples
    --------
    Six states in a row; the feature is known to be good. The experts only prefer the right end, MWAL goes there.

    >>> import numpy as np
    >>> from messirl import MDP, sample, soft_policy
    >>> from messirl.estimators import MWAL
    >>> right = np.minimum(np.arange(6) + 1, 5)
    >>> left = np.maximum(np.arange(6) - 1, 0)
    >>> moves = np.stack([np.eye(6)[left], np.eye(6)[right]], axis=1)
    >>> mdp = MDP(moves, features=np.linspace(0, 1, 6)[:, None], discount=0.9, horizon=8)
    >>> expert = sample(mdp, soft_policy(mdp, mdp.reward([2.0])), 20, start=np.ones(6), random_state=0)
    >>> model = MWAL(signs=[1]).fit(mdp, expert)
    >>> model.predict_proba([0, 3], step=0).round(2)
    array([[0., 1.],
           [0., 1.]])
    >>> bool(model.value_ > 0)
    True
    """

    _facts: ClassVar[tuple[str, ...]] = ("value_", "bound_")

    signs: Any = None
    rounds: int = default("rounds")

    def fit(self, mdp: MDP, expert: TrajectoriesLike, unlabelled: Any = None) -> Self:
        """Fit to the counts of the expert's trajectories; `unlabelled` is not used."""
        expert, unlabelled = as_trajectories(expert, "expert"), as_trajectories(unlabelled, "unlabelled")
        self._check_arguments()
        rounds = self.rounds
        start = read_sets("MWAL", mdp, expert)
        check_bounded("MWAL", mdp)
        rows, target, found = stakes(mdp, self.signs), mean_counts(mdp, expert), BestResponses(mdp, start)
        rate, largest = float(np.log1p(np.sqrt(2.0 * np.log(len(rows)) / rounds))), largest_count(mdp)
        logs, mean = np.zeros(len(rows)), np.zeros(len(rows))
        for _ in range(rounds):
            weights = softmax(logs)
            mean += weights / rounds
            logs = weakened(logs, rows @ (found.add(weighed(weights, rows)) - target), largest, rate)
        self._mix(found, np.append(0.0, np.full(rounds, 1.0 / rounds)))
        self.value_ = value_of(rows, self.weights_ @ self.policy_counts_, target)
        self.bound_ = float(mean @ rows @ (found.best(weighed(mean, rows))[1] - target))
        self.converged_ = True
        return self


def weakened(logs: Floats, ahead: Floats, largest: float, rate: float) -> Floats:
    """Return the log-weights (m,) after a policy with the lead `ahead` (m,): a large lead reduces the weight."""
    return np.asarray(logs - rate * (ahead / largest + 2.0) / 4.0)
