"""MESSI (Alg. 1, Eq. 6): maximise L(θ) − λ R(θ) with λ = λ0/θ_max and ‖θ‖∞ ≤ θ_max."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from messirl._parameters import default
from messirl._types import Floats
from messirl.data.feature_counts import merge_truncation_warnings
from messirl.data.mdp import MDP
from messirl.data.mdp_validation import LARGEST_VALUE
from messirl.data.streamed_trajectories import as_streamed
from messirl.data.trajectories import Trajectories, TrajectoriesLike, as_trajectories
from messirl.estimators._pooled_base import PooledEstimator
from messirl.estimators._search import PreparedFit
from messirl.estimators._streaming import refuse_streamed
from messirl.estimators._training_data import TrainingData
from messirl.similarity import (
    RBF,
    CompleteGraph,
    DynamicTimeWarping,
    EditDistance,
    Exponential,
    NearestNeighbours,
    Precomputed,
    Similarity,
    VisitedStates,
)
from messirl.similarity.base import as_similarity
from messirl.similarity.kernels import DEFAULT


@dataclass(eq=False, repr=False)
class MESSI(PooledEstimator):
    """Maximum entropy semi-supervised inverse reinforcement learning (Alg. 1, Eq. 6).

    MaxEnt-IRL with a penalty on differences in reward between similar trajectories, which uses trajectories of unknown
    quality: J(θ) = L(θ) − λ R(θ) with λ = λ0/θ_max and ‖θ‖∞ ≤ θ_max.

    Parameters
    ----------
    similarity : RBF, Exponential, CompleteGraph, NearestNeighbours, Precomputed, another `Similarity`, str or callable
        Similarity of trajectories, based on their counts or, for EditDistance, DynamicTimeWarping, VisitedStates and
        FisherKernel, on the trajectories themselves. A callable gets (trajectories, counts), experts first, and returns
        a matrix (n, n). A name is "rbf", "exponential", "complete", "neighbours", "edit" or "visited". None means
        "rbf" with the median width on standardised counts.
    lambda0 : float
        λ0, the strength of the penalty.
    theta_max : float
        θ_max, the bound on every weight; it also divides λ0.

    Attributes
    ----------
    penalty_matrix_ : array (d, d) or None
        M of Eq. 5, R(θ) = ½ θᵀMθ; None if λ0 = 0 and the objective uses no counts.

    References
    ----------
    Audiffren, Valko, Lazaric, Ghavamzadeh: Maximum Entropy Semi-Supervised Inverse Reinforcement Learning, IJCAI 2015,
    section 3.

    Examples
    --------
    Six states in a row; the experts prefer the right end, the other trajectories are of unknown quality.

    >>> import numpy as np
    >>> from messirl import MDP, MESSI, sample, soft_policy
    >>> right = np.minimum(np.arange(6) + 1, 5)
    >>> left = np.maximum(np.arange(6) - 1, 0)
    >>> moves = np.stack([np.eye(6)[left], np.eye(6)[right]], axis=1)
    >>> mdp = MDP(moves, features=np.linspace(0, 1, 6)[:, None], discount=0.9, horizon=8)
    >>> expert = sample(mdp, soft_policy(mdp, mdp.reward([2.0])), 20, start=np.ones(6), random_state=0)
    >>> others = sample(mdp, soft_policy(mdp, mdp.reward([1.0])), 20, start=np.ones(6), random_state=1)
    >>> model = MESSI(lambda0=0.5).fit(mdp, expert[:2], others)
    >>> model.theta_.round(2), model.converged_
    (array([1.63]), True)
    >>> round(model.score(expert), 2)
    -0.53
    """

    _kinds: ClassVar[tuple[type[Any], ...]] = (
        *(RBF, Exponential, CompleteGraph, NearestNeighbours, Precomputed),
        *(DynamicTimeWarping, EditDistance, VisitedStates),
    )
    _missed: ClassVar[tuple[str, ...]] = ("similarity",)
    _optional: ClassVar[tuple[str, ...]] = ("penalty_matrix_",)

    similarity: Any = DEFAULT
    lambda0: float = field(default=default("lambda0"), kw_only=True)

    @property
    def measure(self) -> Similarity:
        """The similarity as an object: the given one, a wrapped user function, or the default."""
        return as_similarity(DEFAULT if self.similarity is None else self.similarity)

    @merge_truncation_warnings()
    def fit(
        self,
        mdp: MDP,
        expert: TrajectoriesLike,
        unlabelled: Any = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Fit to the expert's trajectories and to those of unknown quality (None: the penalty is on experts only).

        unlabelled : Trajectories or, for Parquet files that need not fit in memory, a path, a list of paths, a dataset
            of pyarrow, or `messirl.io.StreamedTrajectories`
        """
        expert, unlabelled = as_trajectories(expert, "expert"), as_trajectories(unlabelled, "unlabelled")
        return self._finish(*self._prepare(mdp, expert, unlabelled, sample_weight).found())

    def _check_arguments(self) -> None:
        super()._check_arguments()
        if self.lambda0 > LARGEST_VALUE:
            raise ValueError(f"lambda0={self.lambda0:g} is too large to compute with: give a smaller one")

    def _prepare(
        self,
        mdp: MDP,
        expert: Trajectories,
        unlabelled: Any = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> PreparedFit:
        mdp, data, counts, penalty, quadratic = self._measured(mdp, expert, unlabelled)
        self.penalty_matrix_ = penalty
        return self._prepare_pooled(mdp, data, counts, quadratic, sample_weight)

    def _measured(
        self, mdp: MDP, expert: Trajectories, unlabelled: Any
    ) -> tuple[MDP, TrainingData, Floats | None, Floats | None, Floats | None]:
        """Check the data, and return the MDP with its prior policy, Σ and its counts, M of Eq. 5, and λM."""
        self._check_arguments()
        weight = self.lambda0 / self._bound
        unlabelled = as_streamed(unlabelled)
        if weight > 0 and not self.measure.of_counts:
            refuse_streamed(unlabelled, f"the similarity {self.similarity!r:.80}", "looks at whole trajectories")
        counted = weight > 0 or self.likelihood_ == "counts"
        mdp, data = self._read(mdp, expert, unlabelled, counted=counted)
        counts = self._counts(mdp, data, penalised=weight > 0)
        penalty = None if counts is None else np.zeros((mdp.n_features,) * 2)
        if counts is not None and len(data) > 1:  # a penalty needs at least one pair
            penalty = data.penalty(self.measure, mdp, counts)
        return mdp, data, counts, penalty, weight * penalty if penalty is not None and weight > 0 else None

    def _restore_fitted(self, parts: Any) -> None:
        super()._restore_fitted(parts)
        self._check_shapes((self.mdp_.n_features,) * 2, "penalty_matrix_")
