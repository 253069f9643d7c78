"""Abbeel and Ng 2004: policies are added until a mixture of them matches the experts' feature counts.

With f̄ the counts of the mixture so far, each round finds the policy that is best for the reward w = f* − f̄, adds it,
and updates the mixture:

    projection    f̄ is the projection of f* onto the segment from f̄ to the new policy's counts
    max-margin    f̄ is the point closest to f* among all mixtures of the policies found, so that w is the direction in
                  which the experts are ahead of every policy found by the widest margin

The margin t = ‖f* − f̄‖ bounds the difference between experts and mixture under any reward with ‖θ‖ ≤ 1: the search
ends at t ≤ ε. No policy may be able to match the counts of a few trajectories. But no mixture can come closer than
wᵀ(f* − f_π)/‖w‖ with π the best policy for w, and the search also ends if the margin is within ε of that bound.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning

from messirl._parameters import default
from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.data.trajectories import TrajectoriesLike, as_trajectories
from messirl.estimators._apprenticeship import PolicyMixtureEstimator
from messirl.estimators._best_response import BestResponses
from messirl.estimators._input_checks import check_bounded, mean_counts, read_sets

NEAR = 0.01  # epsilon=None, relative to the first margin
MATCHED, CLOSEST, ALL = "the counts are matched", "no mixture comes closer", "max_policies policies were found"


@dataclass(eq=False, repr=False, kw_only=True)
class AbbeelNg(PolicyMixtureEstimator):
    """Apprenticeship learning by feature matching: a mixture of policies with the experts' feature counts.

    It needs the dynamics, and the states of the experts' trajectories; actions only with state-action features. It does
    not use unlabelled trajectories.

    Parameters
    ----------
    version : {"projection", "max-margin"}
        Update of the mixture: a step towards the newest policy, or the closest of all mixtures.
    epsilon : float, optional
        ε, the distance to the experts' counts at which the search ends. None: a hundredth of the distance of the first
        policy.
    max_policies : int
        Maximum number of policies.

    Attributes
    ----------
    margin_ : float
        ‖f* − f̄‖, the distance of the mixture's counts from the experts'.
    bound_ : float
        Lower bound on this distance for any mixture of policies.
    margins_ : array (k,)
        The margin after each policy.
    converged_ : bool
        Whether the margin is at most ε, or at most ε above the bound.
    termination_ : str
        Reason why the search ended.

    References
    ----------
    Abbeel, Ng: Apprenticeship Learning via Inverse Reinforcement Learning, ICML 2004, section 3.

    Examples
    --------
    Six states in a row. The experts stay near the right end; no deterministic policy matches their counts.

    >>> import numpy as np
    >>> from messirl import MDP, sample, soft_policy
    >>> from messirl.estimators import AbbeelNg
    >>> right = np.minimum(np.arange(6) + 1, 5)
    >>> left = np.maximum(np.arange(6) - 1, 0)
    >>> moves = np.stack([np.eye(6)[left], np.eye(6)[right]], axis=1)
    >>> mdp = MDP(moves, features=np.eye(6), discount=0.9, horizon=8)
    >>> expert = sample(mdp, soft_policy(mdp, np.linspace(0, 1, 6)), 20, start=np.ones(6), random_state=0)
    >>> model = AbbeelNg(version="max-margin", epsilon=0.05).fit(mdp, expert)
    >>> model.termination_, bool(model.margin_ <= 0.05), model.weights_.sum().round(6)
    ('the counts are matched', True, np.float64(1.0))
    """

    _arrays: ClassVar[tuple[str, ...]] = ("margins_",)
    _facts: ClassVar[tuple[str, ...]] = ("margin_", "bound_", "termination_")

    version: str = default("version")
    epsilon: float | None = default("epsilon")
    max_policies: int = default("max_policies")

    def fit(self, mdp: MDP, expert: TrajectoriesLike, unlabelled: Any = None) -> Self:
        """Fit to the counts of the expert's trajectories; `unlabelled` is not used."""
        expert, unlabelled = as_trajectories(expert, "expert"), as_trajectories(unlabelled, "unlabelled")
        self._check_arguments()
        most, step = self.max_policies, VERSIONS[self.version]
        start = read_sets("AbbeelNg", mdp, expert)
        check_bounded("AbbeelNg", mdp)
        target, found = mean_counts(mdp, expert), BestResponses(mdp, start)
        weights, margins, bound, reason = np.ones(1), [], 0.0, ALL
        while True:
            gap = target - weights @ found.counts
            margins.append(float(np.linalg.norm(gap)))
            epsilon = NEAR * margins[0] if self.epsilon is None else self.epsilon
            near = max(epsilon, rounding(found.counts, target))
            if margins[-1] <= near or margins[-1] - bound <= near:
                reason = MATCHED if margins[-1] <= near else CLOSEST
                break
            if len(margins) == most:
                break
            bound = max(bound, float(gap @ (target - found.add(gap))) / margins[-1])
            weights = step(found.counts, weights, target)
        self._mix(found, weights)
        self.margins_, self.margin_, self.bound_ = np.array(margins), margins[-1], bound
        self.termination_, self.converged_ = reason, reason != ALL
        if not self.converged_:
            warnings.warn(
                f"AbbeelNg did not converge: {reason}. The margin is {self.margin_:.3g}, its lower bound {bound:.3g}, "
                f"and epsilon {epsilon:.2g}: raise max_policies or epsilon",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self


def projected(counts: Floats, weights: Floats, target: Floats) -> Floats:
    """Return weights (k,) after adding the policy with the last of the counts (k, d) to a mixture (k − 1,).

    f̄ ← f̄ + α (f_k − f̄),     α = (f_k − f̄)ᵀ(f* − f̄) / ‖f_k − f̄‖², within [0, 1]
    """
    mixture = weights @ counts[:-1]
    way = counts[-1] - mixture
    share = np.clip(way @ (target - mixture) / max(float(way @ way), np.finfo(float).tiny), 0.0, 1.0)
    return np.append((1.0 - share) * weights, share)


def closest(counts: Floats, weights: Floats, target: Floats) -> Floats:
    """Return weights (k,), nonnegative with sum 1, of the mixture of counts (k, d) closest to the target (d,).

    The previous weights do not matter. With M = (counts − target)ᵀ the u ≥ 0 that minimises ‖M u‖² + (1 − Σu)² is a
    multiple of the result: along a direction λ, Σλ = 1, the minimum of s²‖Mλ‖² + (1 − s)² over s is q/(1 + q), which
    increases with q = ‖Mλ‖².
    """
    away = (counts - target).T
    size = max(float(np.abs(away).max()), np.finfo(float).tiny)
    rows, right = np.vstack([away / size, np.ones(len(counts))]), np.append(np.zeros(len(target)), 1.0)
    found, _ = nnls(rows, right, maxiter=100 + 30 * len(counts))
    return np.asarray(found / found.sum())


def rounding(counts: Floats, target: Floats) -> float:
    """Return the distance between counts that rounding alone may cause."""
    return 1e-10 * float(max(np.abs(counts).max(), np.abs(target).max()))


VERSIONS: dict[str, Callable[[Floats, Floats, Floats], Floats]] = {"projection": projected, "max-margin": closest}
