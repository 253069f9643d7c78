"""MESSI with pairs that the policy itself makes: the paper's first direction for other uses of unlabelled data.

MESSI's penalty compares recorded trajectories with each other. Here each recorded trajectory, an expert's or not, is
compared with trajectories of the policy that is being learnt:

    R(θ; θ') = 1/(2n) Σ_{ζ ∈ Σ} Σ_{ζ' ∈ Σ(θ')} [s(ζ, ζ') + s(ζ', ζ)] (θᵀ(f_ζ − f_ζ'))²,      n = |Σ| + |Σ(θ')|

Σ(θ') are m draws of the policy of θ'. The reward should not tell a trajectory of the policy from a recorded one that is
like it. For fixed draws this is Eq. 5 with the similarity zero inside either set, a quadratic form, and the search is
MESSI's; then the draws are made anew, with the same random numbers, until θ stays:

    θ_0 = argmax L(θ),     θ_{k+1} = argmax L(θ) − λ R(θ; θ_k)

There is no objective that all of these rounds climb, so that they need not settle; `converged_` says whether they did.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from messirl._checks import whole
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

SETTLED = 1e-3  # how far a weight may still move, relative to its size or its unit


@dataclass(eq=False, repr=False)
class OwnPolicyMESSI(MESSI):
    """MESSI whose penalty compares recorded trajectories with those of the policy that is learnt.

    Parameters
    ----------
    n_draws : int
        Trajectories of the policy that are drawn in every round.
    max_rounds : int
        Rounds at most.

    Attributes
    ----------
    n_rounds_ : int
        How many rounds there were.
    drawn_ : Trajectories
        Those that the last penalty was made with.
    converged_ : bool
        Whether θ stayed from one round to the next, and the last search converged.

    References
    ----------
    Audiffren, Valko, Lazaric, Ghavamzadeh: Maximum Entropy Semi-Supervised Inverse Reinforcement Learning, IJCAI 2015,
    section 5, which names it as a direction.

    Examples
    --------
    Six places in a row; the experts prefer the right end, of the others nothing is known.

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

    n_draws: int = field(default=100, kw_only=True)
    max_rounds: int = field(default=20, kw_only=True)

    def fit(
        self,
        mdp: MDP,
        expert: TrajectoriesLike,
        unlabelled: Any = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Fit to the expert's trajectories; unlabelled ones are recorded trajectories as well."""
        refuse_streamed(unlabelled, "OwnPolicyMESSI", "compares trajectories one by one")
        expert, unlabelled = as_trajectories(expert, "expert"), as_trajectories(unlabelled, "unlabelled")
        check_trajectories(mdp, expert, "expert")
        most, many = whole("max_rounds", self.max_rounds), whole("n_draws", self.n_draws)
        if expert.goals is not None:
            raise ValueError("OwnPolicyMESSI draws from one policy, and with goals there are many: use MESSI")
        if self.unlabelled_weight > 0.0 or isinstance(self.reference, str):
            raise ValueError("OwnPolicyMESSI uses the unlabelled trajectories in its penalty alone: leave the rest out")
        recorded = expert if unlabelled is None else expert + unlabelled
        length = None if mdp.horizon is not None else max(int(np.median(recorded.lengths)), 2)
        own = {name: value for name, value in self.get_params(deep=False).items() if name in MESSI._get_param_names()}
        seed = 0 if self.random_state is None else self.random_state
        found = MESSI(**(own | {"lambda0": 0.0})).fit(mdp, expert, None, sample_weight)
        settled = False
        for self.n_rounds_ in range(1, most + 1):
            drawn = sample(found.mdp_, found.policy_, many, length, seed, start=found.start_)
            others = drawn if unlabelled is None else unlabelled + drawn
            pairs = {"similarity": Across(self.measure, len(recorded)), "theta_init": found.theta_}
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
                f"OwnPolicyMESSI has not settled in {most} rounds: θ still moves when the policy's trajectories are "
                "drawn anew; draw more (n_draws), or allow more rounds (max_rounds)",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self


@dataclass(frozen=True)
class Across(Similarity):
    """A similarity between the first `n` trajectories and the others; inside either set it is zero."""

    inner: Similarity
    n: int

    def on(self, trajectories: Any, counts: Floats) -> Block:
        """The blocks of the inner similarity, those of pairs from one set being zero."""
        block, first = self.inner.on(trajectories, counts), np.arange(len(counts)) < self.n
        return lambda rows, columns: np.where(first[rows][:, None] != first[columns], block(rows, columns), 0.0)


def _stays(before: Floats, after: Floats, spread: Floats) -> bool:
    """Whether no weight moved by more than a little of its size, or of the inverse of its feature's spread."""
    return bool((np.abs(after - before) <= SETTLED * np.maximum(np.abs(after), 1.0 / spread)).all())
