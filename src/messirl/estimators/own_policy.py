"""MESSI with trajectories of the learnt policy in its penalty: the paper's first suggestion for unlabelled data.

MESSI's penalty compares recorded trajectories with each other. Here each recorded trajectory, expert or unlabelled, is
compared with trajectories of the policy that is being learnt:

    R(θ; θ') = 1/(2n) Σ_{ζ ∈ Σ} Σ_{ζ' ∈ Σ(θ')} [s(ζ, ζ') + s(ζ', ζ)] (θᵀ(f_ζ − f_ζ'))²,      n = |Σ| + |Σ(θ')|

Σ(θ') are m draws of the policy of θ'. Similar trajectories of the policy and of the data should have similar rewards.
For fixed draws this is Eq. 5 with the similarity zero inside either set, a quadratic form, and the search is MESSI's.
Then new trajectories are drawn, with the same random numbers, until θ converges:

    θ_0 = argmax L(θ),     θ_{k+1} = argmax L(θ) − λ R(θ; θ_k)

No single objective increases over the rounds, so they need not converge; `converged_` tells whether they did.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from messirl._parameters import default
from messirl._types import Floats
from messirl.data.feature_scale import feature_spread
from messirl.data.mdp import MDP
from messirl.data.trajectories import TrajectoriesLike, as_trajectories
from messirl.data.validation import check_trajectories
from messirl.estimators._streaming import refuse_streamed
from messirl.estimators.messi import MESSI
from messirl.planning import sample
from messirl.similarity import Similarity
from messirl.similarity.penalty_blocks import Block

SETTLED = 1e-3  # largest change of a weight at convergence, relative to its size or its unit


@dataclass(eq=False, repr=False)
class OwnPolicyMESSI(MESSI):
    """MESSI whose penalty compares recorded trajectories with those of the learnt policy.

    Parameters
    ----------
    n_draws : int
        Number of trajectories sampled from the policy in every round.
    max_rounds : int
        Maximum number of rounds.

    Attributes
    ----------
    n_rounds_ : int
        Number of rounds.
    drawn_ : Trajectories
        Sampled trajectories in the last penalty.
    converged_ : bool
        Whether θ and the last search converged.

    References
    ----------
    Audiffren, Valko, Lazaric, Ghavamzadeh: Maximum Entropy Semi-Supervised Inverse Reinforcement Learning, IJCAI 2015,
    section 5, which names it as a direction.

    Examples
    --------
    Six states in a row; the experts prefer the right end, the other trajectories are of unknown quality.

    >>> import numpy as np
    >>> from messirl import MDP, sample, soft_policy
    >>> from messirl.estimators import OwnPolicyMESSI
    >>> right = np.minimum(np.arange(6) + 1, 5)
    >>> left = np.maximum(np.arange(6) - 1, 0)
    >>> moves = np.stack([np.eye(6)[left], np.eye(6)[right]], axis=1)
    >>> mdp = MDP(moves, features=np.linspace(0, 1, 6)[:, None], discount=0.9, horizon=8)
    >>> expert = sample(mdp, soft_policy(mdp, mdp.reward([2.0])), 20, start=np.ones(6), random_state=0)
    >>> others = sample(mdp, soft_policy(mdp, mdp.reward([1.0])), 20, start=np.ones(6), random_state=1)
    >>> model = OwnPolicyMESSI(lambda0=0.5, random_state=0).fit(mdp, expert[:2], others)
    >>> model.converged_, bool(0 < model.theta_[0] < 3)
    (True, True)
    """

    _facts: ClassVar[tuple[str, ...]] = ("n_rounds_",)

    n_draws: int = field(default=default("n_draws"), kw_only=True)
    max_rounds: int = field(default=default("max_rounds"), kw_only=True)

    def fit(
        self,
        mdp: MDP,
        expert: TrajectoriesLike,
        unlabelled: Any = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Fit to the expert's trajectories; unlabelled ones join them in the penalty."""
        refuse_streamed(unlabelled, "OwnPolicyMESSI", "compares trajectories one by one")
        expert, unlabelled = as_trajectories(expert, "expert"), as_trajectories(unlabelled, "unlabelled")
        check_trajectories(mdp, expert, "expert")
        self._check_arguments()
        most, many = self.max_rounds, self.n_draws
        if expert.goals is not None:
            raise ValueError("OwnPolicyMESSI samples one policy, and with goals there are many: use MESSI")
        if self.unlabelled_weight > 0.0 or isinstance(self.reference, str):
            raise ValueError(
                "OwnPolicyMESSI uses unlabelled trajectories in its penalty alone: "
                "use unlabelled_weight=0 and no reference='unlabelled'"
            )
        recorded = expert if unlabelled is None else expert + unlabelled
        length = None if mdp.horizon is not None else max(int(np.median(recorded.lengths)), 2)
        own = {name: value for name, value in self.get_params(deep=False).items() if name in MESSI._get_param_names()}
        seed = 0 if self.random_state is None else self.random_state
        found = MESSI(**(own | {"lambda0": 0.0})).fit(mdp, expert, None, sample_weight)
        settled = False
        for self.n_rounds_ in range(1, most + 1):
            drawn = sample(found.mdp_, found.policy_, many, length, seed, start=found.start_)
            others = drawn if unlabelled is None else unlabelled + drawn
            pairs = {"similarity": CrossSetSimilarity(self.measure, len(recorded)), "theta_init": found.theta_}
            last, found = found.theta_, MESSI(**(own | pairs)).fit(mdp, expert, others, sample_weight)
            settled = _stays(last, found.theta_, feature_spread(mdp))
            if settled:
                break
        parameters = found.get_params(deep=False)
        for name, value in vars(found).items():
            if name not in parameters:
                setattr(self, name, value)
        self.drawn_, self.converged_ = drawn, bool(found.converged_ and settled)
        if not settled:
            warnings.warn(
                f"OwnPolicyMESSI did not converge in {most} rounds: θ still changes between samples of the policy's "
                "trajectories. Raise n_draws or max_rounds",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self


@dataclass(frozen=True)
class CrossSetSimilarity(Similarity):
    """A similarity between the first `n` trajectories and the rest; within either set it is zero."""

    inner: Similarity
    n: int

    def on(self, trajectories: Any, counts: Floats) -> Block:
        """Return blocks of the inner similarity, with zeros for pairs within one set."""
        block, first = self.inner.on(trajectories, counts), np.arange(len(counts)) < self.n
        return lambda rows, columns: np.where(first[rows][:, None] != first[columns], block(rows, columns), 0.0)


def _stays(before: Floats, after: Floats, spread: Floats) -> bool:
    """Tell whether every weight changed by at most SETTLED, relative to max(|θ_j|, 1/σ_j)."""
    return bool((np.abs(after - before) <= SETTLED * np.maximum(np.abs(after), 1.0 / spread)).all())
