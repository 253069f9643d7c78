"""Abbeel and Ng 2004: policies are added until a mixture of them has the experts' feature counts.

With f̄ the counts of the mixture so far, each round finds the policy that is best for the reward w = f* − f̄, adds it,
and mixes anew:

    projection    f̄ moves along the segment to the new policy's counts, as close to f* as it comes
    max-margin    f̄ is the point closest to f* among all mixtures of what was found, so that w is the direction in which
                  the experts are ahead of every policy found by the widest margin

The margin t = ‖f* − f̄‖ bounds what any reward with ‖θ‖ ≤ 1 can tell between experts and mixture: at t ≤ ε the search
ends. The counts of few trajectories may be out of every policy's reach; but no mixture at all can come closer than
wᵀ(f* − f_π)/‖w‖ with π the best policy for w, and where that bound is within ε of the margin the search ends too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning

from messirl._checks import number, whole
from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.data.trajectories import TrajectoriesLike, as_trajectories
from messirl.estimators._apprenticeship import Mixture
from messirl.estimators._best_response import Responses
from messirl.estimators._input_checks import check_bounded, mean_counts, read_sets

NEAR = 0.01  # share of the first margin that epsilon=None stops at
MATCHED, CLOSEST, ALL = "the counts are matched", "no mixture comes closer", "max_policies policies were found"


@dataclass(eq=False, repr=False, kw_only=True)
class AbbeelNg(Mixture):
    """Apprenticeship learning by matching feature counts: a mixture of policies that collects what the experts do.

    It needs the dynamics, and the states of the experts' trajectories; actions only with state-action features. Of
    unlabelled trajectories it makes no use.

    Parameters
    ----------
    version : {"projection", "max-margin"}
        How the policies found are mixed: by a step towards the newest, or by the closest of all mixtures.
    epsilon : float, optional
        ε, the distance to the experts' counts at which the search ends. None: a hundredth of the distance that the
        first policy has.
    max_policies : int
        Policies at most.

    Attributes
    ----------
    margin_ : float
        ‖f* − f̄‖, how far the mixture's counts are from the experts'.
    bound_ : float
        No mixture of any policies comes closer to the experts' counts than this.
    margins_ : array (k,)
        The margin after each policy.
    converged_ : bool
        Whether the margin is at most ε, or at most ε above the bound.
    termination_ : str
        Which of these it was.

    References
    ----------
    Abbeel, Ng: Apprenticeship Learning via Inverse Reinforcement Learning, ICML 2004, section 3.

    Examples
    --------
    Six places in a row. The experts stay near the right end, which no single policy without chance does as they do.

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

    version: str = "projection"
    epsilon: float | None = None
    max_policies: int = 200

    def fit(self, mdp: MDP, expert: TrajectoriesLike, unlabelled: Any = None) -> Self:
        """Fit to the counts of the expert's trajectories; `unlabelled` is not looked at."""
        expert, unlabelled = as_trajectories(expert, "expert"), as_trajectories(unlabelled, "unlabelled")
        self._check_arguments()
        if self.version not in VERSIONS:
            raise ValueError(f"version={self.version!r}: choose {' or '.join(map(repr, VERSIONS))}")
        if self.epsilon is not None:
            number("epsilon", self.epsilon, least=0.0)
        most, step = whole("max_policies", self.max_policies), VERSIONS[self.version]
        start = read_sets("AbbeelNg", mdp, expert)
        check_bounded("AbbeelNg", mdp)
        target, found = mean_counts(mdp, expert), Responses(mdp, start)
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
                f"AbbeelNg did not converge: {reason}, the margin is {self.margin_:.3g} where {bound:.3g} may be "
                f"possible, and epsilon is {epsilon:.2g}: allow more policies, or a larger epsilon",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self


def projected(counts: Floats, weights: Floats, target: Floats) -> Floats:
    """Weights (k,) after the policy with the last of the counts (k, d) came to a mixture with weights (k − 1,).

    f̄ ← f̄ + α (f_k − f̄),     α = (f_k − f̄)ᵀ(f* − f̄) / ‖f_k − f̄‖², within [0, 1]
    """
    mixture = weights @ counts[:-1]
    way = counts[-1] - mixture
    share = np.clip(way @ (target - mixture) / max(float(way @ way), np.finfo(float).tiny), 0.0, 1.0)
    return np.append((1.0 - share) * weights, share)


def closest(counts: Floats, weights: Floats, target: Floats) -> Floats:
    """Weights (k,), at least 0 and summing to 1, of the mixture of the counts (k, d) closest to the target (d,).

    Whatever the weights before. With M = (counts − target)ᵀ the u ≥ 0 that minimises ‖M u‖² + (1 − Σu)² is a multiple
    of it: along a direction λ, Σλ = 1, the least of s²‖Mλ‖² + (1 − s)² is q/(1 + q), which rises with q = ‖Mλ‖².
    """
    away = (counts - target).T
    size = max(float(np.abs(away).max()), np.finfo(float).tiny)
    rows, right = np.vstack([away / size, np.ones(len(counts))]), np.append(np.zeros(len(target)), 1.0)
    found, _ = nnls(rows, right, maxiter=100 + 30 * len(counts))
    return np.asarray(found / found.sum())


def rounding(counts: Floats, target: Floats) -> float:
    """A distance between counts that is none."""
    return 1e-10 * float(max(np.abs(counts).max(), np.abs(target).max()))


VERSIONS: dict[str, Callable[[Floats, Floats, Floats], Floats]] = {"projection": projected, "max-margin": closest}
