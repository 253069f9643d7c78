"""MaxEnt-IRL (Eq. 4) with an optional ridge: maximise L(θ) − ½ρ‖θ‖²."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from messirl._parameters import default
from messirl._types import Floats
from messirl.data.feature_counts import merge_truncation_warnings
from messirl.data.mdp import MDP
from messirl.data.streamed_trajectories import as_streamed
from messirl.data.trajectories import Trajectories, TrajectoriesLike, as_trajectories
from messirl.estimators._pooled_base import PooledEstimator
from messirl.estimators._search import PreparedFit
from messirl.estimators._training_data import TrainingData
from messirl.similarity.standardize import deviations


@dataclass(eq=False, repr=False, kw_only=True)
class MaxEntIRL(PooledEstimator):
    """Maximum entropy inverse reinforcement learning (Eq. 4), with an optional L2 penalty.

    Parameters
    ----------
    ridge : float
        ρ, the strength of the penalty ½ρ‖θ‖².
    standardise : bool
        Whether to standardise the counts in the penalty, ½ρ Σ_j (σ_j θ_j)², with the spread σ_j over the expert's
        trajectories and, if given to `fit`, the unlabelled ones.

    References
    ----------
    Ziebart, Maas, Bagnell, Dey: Maximum Entropy Inverse Reinforcement Learning, AAAI 2008. Ziebart, Bagnell, Dey:
    Modeling Interaction via the Principle of Maximum Causal Entropy, ICML 2010.

    Examples
    --------
    Six states in a row; the experts prefer the right end, where the feature is 1.

    >>> import numpy as np
    >>> from messirl import MDP, MaxEntIRL, sample, soft_policy
    >>> right = np.minimum(np.arange(6) + 1, 5)
    >>> left = np.maximum(np.arange(6) - 1, 0)
    >>> moves = np.stack([np.eye(6)[left], np.eye(6)[right]], axis=1)
    >>> mdp = MDP(moves, features=np.linspace(0, 1, 6)[:, None], discount=0.9, horizon=8)
    >>> expert = sample(mdp, soft_policy(mdp, mdp.reward([2.0])), 20, start=np.ones(6), random_state=0)
    >>> model = MaxEntIRL().fit(mdp, expert)
    >>> model.theta_.round(2), model.converged_
    (array([2.19]), True)
    >>> model.predict_proba([0, 3], step=0).round(2)
    array([[0.16, 0.84],
           [0.08, 0.92]])
    """

    ridge: float = default("ridge")
    standardise: bool = default("standardise")

    @merge_truncation_warnings()
    def fit(
        self,
        mdp: MDP,
        expert: TrajectoriesLike,
        unlabelled: Any = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Fit to the expert's trajectories.

        Unlabelled ones are used by `standardise`, `reference="unlabelled"` and `unlabelled_weight` only.

        unlabelled : Trajectories or, for Parquet files that need not fit in memory, a path, a list of paths, a dataset
            of pyarrow, or `messirl.io.StreamedTrajectories`
        """
        expert, unlabelled = as_trajectories(expert, "expert"), as_trajectories(unlabelled, "unlabelled")
        return self._finish(*self._prepare(mdp, expert, unlabelled, sample_weight).found())

    def _prepare(
        self,
        mdp: MDP,
        expert: Trajectories,
        unlabelled: Trajectories | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> PreparedFit:
        self._check_arguments()
        unlabelled, spread = as_streamed(unlabelled), self.ridge > 0 and self.standardise
        counted = spread or (self.likelihood_ == "counts" and self.unlabelled_weight > 0)
        mdp, data = self._read(mdp, expert, unlabelled, counted=counted)
        needed = data if spread or self.unlabelled_weight > 0 else TrainingData(expert)
        counts = self._counts(mdp, needed, penalised=spread)
        return self._prepare_pooled(mdp, data, counts, self._quadratic(mdp, counts), sample_weight)

    def _quadratic(self, mdp: MDP, counts: Floats | None) -> Floats | None:
        if self.ridge == 0:
            return None
        if not self.standardise:
            return float(self.ridge) * np.eye(mdp.n_features)
        assert counts is not None
        variance = deviations(counts) ** 2
        if not variance.any():
            raise ValueError(
                "standardise=True, but the counts do not vary: give fit more than one trajectory, expert or unlabelled"
            )
        return float(self.ridge) * np.diag(variance)
