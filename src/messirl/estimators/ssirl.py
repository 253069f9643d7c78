"""SSIRL, Valko et al. 2012: Abbeel and Ng's search with rewards from a semi-supervised support vector machine.

Each round finds the best policy for the reward w that minimises

    max(0, 1 − wᵀf*) + Σ_j max(0, 1 + wᵀf_j) + γ_u Σ_u max(0, 1 − |wᵀf_u|) + γ_l ‖w‖²

with f* the experts' counts, f_j those of the policies found so far, which are all negative examples, and f_u those of
unlabelled trajectories, which the third term keeps outside the margin on either side. Counts are in units of the
longest count vector.

With `offset` all counts have one more coordinate, 1, so that the hyperplane need not pass through the origin. The
original has no offset; without it the search can stall and find the same policy repeatedly.

The third term is min over y_u = ±1 of max(0, 1 − y_u wᵀf_u): for fixed y_u the problem is a convex support vector
machine, for fixed w the best y_u is the sign of wᵀf_u. Alternating the two never increases the objective, and ends
after finitely many iterations in a local minimum. The start is the machine without unlabelled trajectories.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from messirl._parameters import default
from messirl._types import Floats
from messirl.data.feature_counts import checked_feature_counts
from messirl.data.mdp import MDP
from messirl.data.trajectories import TrajectoriesLike, as_trajectories
from messirl.estimators._apprenticeship import PolicyMixtureEstimator
from messirl.estimators._best_response import BestResponses
from messirl.estimators._input_checks import check_bounded, mean_counts, read_sets
from messirl.estimators._svm import support_vector_machine
from messirl.estimators.abbeel_ng import closest

NEEDED = "needs unlabelled trajectories: give them to fit"
TURNS = 100  # largest number of alternations between signs and machine


@dataclass(eq=False, repr=False, kw_only=True)
class SSIRL(PolicyMixtureEstimator):
    """Semi-supervised apprenticeship learning: a mixture of policies found with the help of unlabelled trajectories.

    There is no stopping rule: it finds `max_policies` policies. All of them, even good ones, are negative examples, and
    the more there are the less the unlabelled trajectories matter. The mixture is the closest to the experts' counts
    that the policies allow, and approaches that of `AbbeelNg(version="max-margin")`, as `margins_` shows.

    It needs unlabelled trajectories, the dynamics, and the states of all trajectories; actions only with state-action
    features.

    Parameters
    ----------
    unlabelled_cost : float
        γ_u, the cost of an unlabelled trajectory inside the margin, relative to that of the experts.
    ridge : float
        γ_l, the strength of the penalty on ‖w‖².
    offset : bool
        Whether the separating hyperplane may have an offset from the origin.
    max_policies : int
        Total number of policies, including the first, which is that of maximum entropy.

    Attributes
    ----------
    directions_ : array (k − 1, d)
        The rewards w, of length 1, for which the policies after the first are optimal.
    margins_ : array (k,)
        ‖f* − f̄‖ of the closest mixture after each policy.
    margin_ : float
        The last margin.
    converged_ : bool
        Always true: there is no stopping rule.

    References
    ----------
    Valko, Ghavamzadeh, Lazaric: Semi-Supervised Apprenticeship Learning, EWRL 2012.

    Examples
    --------
    Six states in a row; the experts prefer the right end, the other trajectories are of unknown quality.

    >>> import numpy as np
    >>> from messirl import MDP, sample, soft_policy
    >>> from messirl.estimators import SSIRL
    >>> right = np.minimum(np.arange(6) + 1, 5)
    >>> left = np.maximum(np.arange(6) - 1, 0)
    >>> moves = np.stack([np.eye(6)[left], np.eye(6)[right]], axis=1)
    >>> mdp = MDP(moves, features=np.eye(6), discount=0.9, horizon=8)
    >>> expert = sample(mdp, soft_policy(mdp, np.linspace(0, 2, 6)), 20, start=np.ones(6), random_state=0)
    >>> others = sample(mdp, soft_policy(mdp, np.linspace(0, 1, 6)), 20, start=np.ones(6), random_state=1)
    >>> model = SSIRL(max_policies=8).fit(mdp, expert, others)
    >>> model.margins_.shape, bool((np.diff(model.margins_) <= 1e-9).all())
    ((8,), True)
    """

    _arrays: ClassVar[tuple[str, ...]] = ("directions_", "margins_")
    _facts: ClassVar[tuple[str, ...]] = ("margin_",)

    unlabelled_cost: float = default("unlabelled_cost")
    ridge: float = default("ridge", "SSIRL")
    offset: bool = default("offset")
    max_policies: int = default("max_policies", "SSIRL")

    def fit(self, mdp: MDP, expert: TrajectoriesLike, unlabelled: TrajectoriesLike | None = None) -> Self:
        """Fit to the counts of the expert's trajectories, with the help of the unlabelled ones."""
        expert, unlabelled = as_trajectories(expert, "expert"), as_trajectories(unlabelled, "unlabelled")
        self._check_arguments()
        cost, offset, ridge, most = self.unlabelled_cost, self.offset, self.ridge, self.max_policies
        start = read_sets("SSIRL", mdp, expert, unlabelled, needed=NEEDED)
        check_bounded("SSIRL", mdp)
        assert unlabelled is not None
        target, others = mean_counts(mdp, expert), checked_feature_counts(mdp, unlabelled, " of unlabelled")
        found, directions = BestResponses(mdp, start), []
        margins = [float(np.linalg.norm(target - found.counts[0]))]
        weights = np.ones(1)
        while len(margins) < most:
            directions.append(separating(target, found.counts, others, cost, ridge, offset=offset))
            found.add(directions[-1])
            weights = closest(found.counts, weights, target)
            margins.append(float(np.linalg.norm(target - weights @ found.counts)))
        self._mix(found, weights)
        self.directions_ = np.reshape(directions, (-1, mdp.n_features))
        self.margins_, self.margin_, self.converged_ = np.array(margins), margins[-1], True
        return self


def separating(target: Floats, found: Floats, others: Floats, cost: float, ridge: float, *, offset: bool) -> Floats:
    """Return w (d,), ‖w‖ = 1, that separates f* (d,) from found counts (k, d), with few others (u, d) between."""
    both = np.vstack([target, found, others])
    points = both / max(float(np.linalg.norm(both, axis=1).max()), np.finfo(float).tiny)
    if offset:
        points = np.column_stack([points, np.ones(len(points))])
    known, signs = 1 + len(found), np.append(1.0, np.full(len(found), -1.0))
    costs = np.append(np.ones(known), np.full(len(others), cost)) / (2.0 * ridge)
    w = support_vector_machine(points[:known], signs, costs[:known])
    last: Floats = np.zeros(0)
    for _ in range(TURNS if cost > 0.0 else 0):
        side = np.where(points[known:] @ w >= 0.0, 1.0, -1.0)
        if np.array_equal(side, last):
            break
        w, last = support_vector_machine(points, np.append(signs, side), costs), side
    w = w[: len(target)]
    return np.asarray(w / max(float(np.linalg.norm(w)), np.finfo(float).tiny))
