"""SSIRL, Valko et al. 2012: Abbeel and Ng's search, steered by a semi-supervised support vector machine.

Each round finds the best policy for the reward w that minimises

    max(0, 1 − wᵀf*) + Σ_j max(0, 1 + wᵀf_j) + γ_u Σ_u max(0, 1 − |wᵀf_u|) + γ_l ‖w‖²

f* the experts' counts, f_j those of the policies found so far, all of which are labelled bad, f_u those of unlabelled
trajectories, which w is to keep out of its margin on either side. Counts are measured in units of the longest of them.

With `offset` all counts have one more coordinate, 1, so that the border need not pass through the origin. The original
has none; without it the search can stand still, finding the same policy again and again.

The third term is min over y_u = ±1 of max(0, 1 − y_u wᵀf_u): with y_u held the problem is a convex support vector
machine, with w held y_u is the sign of wᵀf_u. In turn they never raise the objective and end in finitely many turns,
in a minimum that need not be the lowest: it is begun from the machine without unlabelled trajectories.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from messirl._checks import flag, number, whole
from messirl._types import Floats
from messirl.data.feature_counts import checked_feature_counts
from messirl.data.mdp import MDP
from messirl.data.trajectories import TrajectoriesLike, as_trajectories
from messirl.estimators._apprenticeship import Mixture
from messirl.estimators._best_response import Responses
from messirl.estimators._input_checks import check_bounded, mean_counts, read_sets
from messirl.estimators._svm import support_vector_machine
from messirl.estimators.abbeel_ng import closest

NEEDED = "steers its search by unlabelled trajectories: give them to fit"
TURNS = 100  # of signs and machine at most


@dataclass(eq=False, repr=False, kw_only=True)
class SSIRL(Mixture):
    """Semi-supervised apprenticeship learning: a mixture of policies found with the help of unlabelled trajectories.

    There is no stopping rule: it finds as many policies as it is told to. All of them count as bad, also the good ones,
    and the more there are the less the unlabelled trajectories matter: the mixture, the closest to the experts' counts
    that the policies allow, comes to be that of `AbbeelNg(version="max-margin")`. `margins_` shows it.

    It needs unlabelled trajectories, the dynamics, and the states of all trajectories; actions only with state-action
    features.

    Parameters
    ----------
    unlabelled_cost : float
        γ_u, what an unlabelled trajectory inside the margin costs where the experts cost 1.
    ridge : float
        γ_l, of the penalty on ‖w‖².
    offset : bool
        Whether the border between good and bad may lie anywhere, or has to pass through the origin.
    max_policies : int
        Policies in all, with the first, which is that of maximum entropy.

    Attributes
    ----------
    directions_ : array (k − 1, d)
        The rewards w that the policies after the first are best for, of length 1.
    margins_ : array (k,)
        ‖f* − f̄‖ of the closest mixture after each policy.
    margin_ : float
        The last of them.
    converged_ : bool
        Always true: there is no rule by which it could have stopped.

    References
    ----------
    Valko, Ghavamzadeh, Lazaric: Semi-Supervised Apprenticeship Learning, EWRL 2012.

    Examples
    --------
    Six places in a row; the experts prefer the right end, of the others nothing is known.

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

    unlabelled_cost: float = 0.1
    ridge: float = 0.01
    offset: bool = True
    max_policies: int = 20

    def fit(self, mdp: MDP, expert: TrajectoriesLike, unlabelled: TrajectoriesLike | None = None) -> Self:
        """Fit to the counts of the expert's trajectories, with the help of the unlabelled ones."""
        expert, unlabelled = as_trajectories(expert, "expert"), as_trajectories(unlabelled, "unlabelled")
        self._check_arguments()
        cost = number("unlabelled_cost", self.unlabelled_cost, least=0.0)
        offset = flag("offset", self.offset)
        ridge, most = number("ridge", self.ridge, above=0.0), whole("max_policies", self.max_policies)
        start = read_sets("SSIRL", mdp, expert, unlabelled, needed=NEEDED)
        check_bounded("SSIRL", mdp)
        assert unlabelled is not None
        target, others = mean_counts(mdp, expert), checked_feature_counts(mdp, unlabelled, " of unlabelled")
        found, directions = Responses(mdp, start), []
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
    """The reward w (d,), ‖w‖ = 1, that keeps f* (d,) from what was found (k, d) with few others (u, d) between."""
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
