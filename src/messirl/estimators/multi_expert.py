"""Several experts with individual rewards: a hierarchical model with a shared θ and a deviation per expert.

    θ_k = θ_0 + δ_k     for the experts of group k

    J = Σ_k L_k(θ_k) − λ Σ_k (n_k/n) R(θ_k) − 1/(2τ²N) Σ_k Σ_j (unit_j δ_kj)²

L_k is the part of group k in the likelihood of all experts, R MESSI's penalty (Eq. 5) over all trajectories, and δ_kj
has a normal prior with the standard deviation τ/unit_j, unit_j the spread of feature j. For given θ_k the best θ_0 is
their mean; `theta_prior` is a prior of θ_0. So J is a function of the θ_k, of the same form as J of one expert with K·d
weights, and is maximised by the same search.

With one group δ = 0 and this is MESSI. With τ → 0 it is MESSI of all experts together; with τ → ∞ each has a separate
fit, which shares only the trajectories of the penalty with the others.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag

from messirl._parameters import default
from messirl._text import join_names
from messirl._types import Floats, Ints
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories, TrajectoriesLike, as_trajectories
from messirl.estimators._initialization import WarmStart
from messirl.estimators._multi_theta import MultiThetaMESSI, as_labels
from messirl.estimators._search import FitResult, search_beyond_saddles
from messirl.objective import Barrier, Evaluation, Objective, checked_weights, curvature_scale
from messirl.optim.lockstep import run_search


@dataclass(eq=False, repr=False)
class SeveralExperts(MultiThetaMESSI):
    """Several experts, each with a θ that is shrunk towards a shared one; MESSI's penalty on each.

    θ_k = θ_0 + δ_k with δ_k normal around zero. `fit` takes the group of every trajectory; without groups there is one,
    and the fit is that of MESSI. If no group is given, policy and scores are those of θ_0.

    Parameters
    ----------
    spread : float
        τ, the standard deviation of an expert's deviation δ, in units of one over the spread of its feature.

    Attributes
    ----------
    theta_ : array (d,)
        θ_0, the shared weights.
    thetas_ : array (K, d)
        θ_k of every group, in the order of `groups_`.
    groups_ : array (K,)
        The labels of the groups, sorted.

    References
    ----------
    Audiffren, Valko, Lazaric, Ghavamzadeh: Maximum Entropy Semi-Supervised Inverse Reinforcement Learning, IJCAI 2015,
    section 6, names several experts as a direction. Dimitrakakis, Rothkopf: Bayesian Multitask Inverse Reinforcement
    Learning, EWRL 2011.

    Examples
    --------
    Six states in a row; one expert prefers the right end a little, the other very much.

    >>> import numpy as np
    >>> from messirl import MDP, sample, soft_policy
    >>> from messirl.estimators import SeveralExperts
    >>> right = np.minimum(np.arange(6) + 1, 5)
    >>> left = np.maximum(np.arange(6) - 1, 0)
    >>> moves = np.stack([np.eye(6)[left], np.eye(6)[right]], axis=1)
    >>> mdp = MDP(moves, features=np.linspace(0, 1, 6)[:, None], discount=0.9, horizon=8)
    >>> mild = sample(mdp, soft_policy(mdp, mdp.reward([1.0])), 20, start=np.ones(6), random_state=0)
    >>> keen = sample(mdp, soft_policy(mdp, mdp.reward([3.0])), 20, start=np.ones(6), random_state=1)
    >>> model = SeveralExperts(lambda0=0.0).fit(mdp, mild + keen, groups=["mild"] * 20 + ["keen"] * 20)
    >>> model.groups_.tolist(), model.thetas_.round(1).ravel().tolist(), model.theta_.round(1)
    (['keen', 'mild'], [3.1, 1.0], array([2.1]))
    """

    _arrays: ClassVar[tuple[str, ...]] = ("groups_",)

    spread: float = field(default=default("spread"), kw_only=True)

    def fit(
        self,
        mdp: MDP,
        expert: TrajectoriesLike,
        unlabelled: Any = None,
        sample_weight: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
    ) -> Self:
        """Fit to the experts' trajectories and to those of unknown quality.

        groups : (l,) the group of each expert trajectory, whole numbers or texts; None: one group
        """
        expert, unlabelled = as_trajectories(expert, "expert"), as_trajectories(unlabelled, "unlabelled")
        return self._finish(*self._solve(mdp, expert, unlabelled, sample_weight, groups))

    def _solve(
        self,
        mdp: MDP,
        expert: Trajectories,
        unlabelled: Any = None,
        sample_weight: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
    ) -> FitResult:
        mdp, _, counts, penalty, quadratic = self._measured(mdp, expert, unlabelled)
        labels = np.zeros(len(expert), dtype=np.int64) if groups is None else as_labels(groups, len(expert))
        found, of = np.unique(labels, return_inverse=True)
        own = np.ones(len(expert)) if sample_weight is None else checked_weights(sample_weight, len(expert))

        def part(which: Ints) -> Objective:
            known = None if counts is None else counts[which]
            given = None if sample_weight is None else own[which]
            return self._objective(mdp, expert[which], known, None, given, which.size)

        together = part(np.arange(len(expert)))
        stacked = StackedObjective(
            [part(np.flatnonzero(of == k)) for k in range(found.size)],
            together,
            np.bincount(of, own) / own.sum(),
            quadratic,
            together.with_prior(None, self.theta_prior),
            self.spread,
        )
        theta = self._theta_start(mdp, together)
        start = WarmStart(np.tile(theta, found.size))
        search = search_beyond_saddles(stacked, start, self._settings)  # type: ignore[arg-type]
        result = run_search(search)
        self.penalty_matrix_, self.groups_ = penalty, found
        self.thetas_ = result.theta.reshape(found.size, -1)
        shared = together.penalised(together.with_prior(quadratic, self.theta_prior))
        mean = self.thetas_.mean(axis=0)
        move = result.move.reshape(self.thetas_.shape).max(axis=0)
        return mdp, expert, shared, theta, replace(result, theta=mean, point=shared(mean), move=move, curvature=None)

    def score(self, trajectories: TrajectoriesLike, groups: npt.ArrayLike | None = None) -> float:
        """Return the mean log-probability per step: under θ_0 or, with `groups` (n,), under the θ of each group."""
        trajectories = as_trajectories(trajectories)
        if groups is None:
            return super().score(trajectories)
        labels, steps = as_labels(groups, len(trajectories)), trajectories.lengths - 1
        if steps.sum() == 0:
            raise ValueError("these trajectories make no step: there is nothing to score")
        total = 0.0
        for label in np.unique(labels):
            which = np.flatnonzero((labels == label) & (steps > 0))
            if which.size:
                total += super(MultiThetaMESSI, self._of(label)).score(trajectories[which]) * int(steps[which].sum())
        return total / int(steps.sum())

    def _number(self, group: Any) -> int | None:
        if group is None:
            return None
        at = np.flatnonzero(self.groups_ == group)
        if at.size != 1:
            raise ValueError(
                f"group {str(group)!r} is not in the fit: choose from {join_names([*map(str, self.groups_)])}"
            )
        return int(at[0])

    def _restore_fitted(self, parts: Any) -> None:
        super()._restore_fitted(parts)
        if self.groups_.shape != self.thetas_.shape[:1]:
            raise ValueError("its groups_ and thetas_ differ in length")


class StackedObjective:
    """J of all groups as a function of their concatenated weights, (K·d,).

    parts : the objective of each group, without a penalty
    together : the objective of all groups, whose likelihood is the sum of the parts
    share : (K,) n_k/n
    quadratic : (d, d) MESSI's penalty on each θ_k; prior : (d, d) on their mean; spread : τ
    """

    lane = None

    def __init__(
        self,
        parts: list[Objective],
        together: Objective,
        share: Floats,
        quadratic: Floats | None,
        prior: Floats | None,
        spread: float,
    ) -> None:
        k, self.parts, self.mdp = len(parts), parts, together.mdp
        self.weight = [part.size / together.size for part in parts]
        self.unit = np.tile(together.unit, k)
        apart = np.kron(np.eye(k) - 1.0 / k, np.diag((together.unit / spread) ** 2 / together.size))
        self.quadratic: Any = apart if k > 1 else None
        for shape, matrix in ((np.diag(share), quadratic), (np.full((k, k), 1.0 / k**2), prior)):
            if matrix is not None:
                more = np.kron(shape, matrix)
                self.quadratic = more if self.quadratic is None else self.quadratic + more

    @property
    def scale(self) -> Floats:
        """Square root of the approximate curvature of J along each weight, (K·d,)."""
        return curvature_scale(self.unit, self.quadratic)

    @property
    def concave(self) -> bool:
        """True if J is known to be concave."""
        return all(part.concave for part in self.parts)

    @property
    def curvature_is_cheap(self) -> bool:
        """True if ∇²J takes about as long as J."""
        return all(part.curvature_is_cheap for part in self.parts)

    def hessian(self, theta: Floats, *, by_differences: bool = True) -> Floats:
        """Return ∇²J, (K·d, K·d)."""
        parts = [part.hessian(own, by_differences=by_differences) for part, own in self._split(theta)]
        hessian = block_diag(*(w * part for w, part in zip(self.weight, parts, strict=True)))
        return np.asarray(hessian if self.quadratic is None else hessian - self.quadratic)

    def barrier(self, theta: Floats) -> list[Barrier]:
        """Return the barrier of each group, with its minimum at θ."""
        return [part.barrier(own) for part, own in self._split(theta)]

    def minus_barrier(self, barriers: list[Barrier], weight: float) -> Self:
        """Return J minus the weighted barriers of all groups."""
        other = copy(self)
        other.parts = [part.minus_barrier(own, weight) for part, own in zip(self.parts, barriers, strict=True)]
        return other

    def _split(self, theta: Floats) -> list[tuple[Objective, Floats]]:
        """Return the objective of each group with its own weights."""
        return list(zip(self.parts, np.split(theta, len(self.parts)), strict=True))

    def __call__(self, theta: Floats) -> Evaluation:
        """Return J and its gradient."""
        found = [part(own) for part, own in self._split(theta)]
        nothing = np.zeros_like(theta)
        if not all(np.isfinite(one.value) for one in found):
            return Evaluation(-np.inf, nothing, nothing, None)
        value = sum(w * one.value for w, one in zip(self.weight, found, strict=True))
        gradient = np.concatenate([w * one.gradient for w, one in zip(self.weight, found, strict=True)])
        if self.quadratic is not None:
            pull = self.quadratic @ theta
            value -= 0.5 * float(theta @ pull)
            gradient = gradient - pull
        return Evaluation(value, gradient, nothing, None)
