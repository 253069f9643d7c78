"""Relative entropy IRL, Boularias, Kober and Peters 2011: a reward from trajectories alone, without the dynamics.

Of all distributions of trajectories with the experts' feature counts, to within ε_j, the one closest to a base
distribution Q has the form P(ζ) ∝ Q(ζ) exp(θᵀf_ζ). Its θ maximises the concave

    L(θ) = θᵀf* − log Σ_ζ w_ζ exp(θᵀf_ζ) − Σ_j ε_j |θ_j|

over a sample of trajectories. If the sample is drawn from Q itself, w_ζ is 1/n. If Q is the prior policy U in the same
dynamics, but the sample is of another policy π, w_ζ are importance weights Π_t U(a_t|s_t)/π(a_t|s_t), scaled to sum to
one: the dynamics are unknown but cancel. If no weighting of a small sample has the experts' counts, θ would diverge; f*
is then replaced by the closest attainable counts, each measured in units of its feature's spread. ε_j has these units
too.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning

from messirl._parameters import default
from messirl._types import Floats
from messirl.data.feature_counts import checked_feature_counts
from messirl.data.feature_scale import feature_spread
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories, TrajectoriesLike, as_trajectories
from messirl.estimators._input_checks import mean_counts, read_sets
from messirl.estimators._prior_policy import fit_population_policy
from messirl.estimators._reward_base import RewardEstimator
from messirl.estimators.abbeel_ng import closest
from messirl.estimators.uniform import uniform_rows
from messirl.planning import NoFiniteValue, log_likelihood, sample
from messirl.planning.likelihood import reward_log_likelihood
from messirl.planning.planner import solution_from_start

NEEDED = "compares the experts with unlabelled trajectories: give them to fit, or use base='uniform'"
MAX_STEPS = 10_000
RESTARTS = 5
SETTLED = 1e-6  # largest gradient at convergence, in units of the features' spread


@dataclass(eq=False, repr=False, kw_only=True)
class RelativeEntropyIRL(RewardEstimator):
    """Relative entropy IRL: the reward of the experts relative to a prior policy, from trajectories alone.

    θ is estimated without the dynamics, from the feature counts of the experts and of other trajectories. Actions are
    needed only with state-action features and, if `base` is not "unlabelled", for the unlabelled trajectories.
    `policy_` uses the dynamics of the MDP: it is the soft policy of the reward relative to the prior policy. As in the
    original, random transitions and start states are treated as if the experts had chosen them.

    Parameters
    ----------
    base : {"unlabelled", "uniform"} or array (S, A)
        The base distribution Q: that of the unlabelled trajectories, or of a policy. With a policy, the unlabelled
        trajectories get importance weights, with their own policy estimated from them; without unlabelled
        trajectories, some are sampled.
    epsilon : float
        Allowed deviation from the experts' counts, in units of the spread of each feature; above 0.
    n_samples : int
        Number of sampled trajectories if there are no unlabelled ones; they are as long as the longest expert's unless
        they end earlier.
    reference_strength : float
        Strength of the uniform prior of a policy estimated from the unlabelled trajectories, in choices per state.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        Random source of the sampled trajectories.

    Attributes
    ----------
    feature_counts_ : array (d,)
        Expected feature counts over the sample, weighted by P.
    missed_ : float
        Smallest distance of a weighting of the sample from the experts' counts, in these units.
    effective_sample_size_ : float
        1/Σ P², the effective number of trajectories in the sample.
    objective_ : float
        L at `theta_`.
    converged_ : bool
        Whether the maximum of L was found.

    References
    ----------
    Boularias, Kober, Peters: Relative Entropy Inverse Reinforcement Learning, AISTATS 2011.

    Examples
    --------
    Six states in a row; the experts prefer the right end, the unlabelled trajectories are random walks.

    >>> import numpy as np
    >>> from messirl import MDP, sample, soft_policy
    >>> from messirl.estimators import RelativeEntropyIRL
    >>> right = np.minimum(np.arange(6) + 1, 5)
    >>> left = np.maximum(np.arange(6) - 1, 0)
    >>> moves = np.stack([np.eye(6)[left], np.eye(6)[right]], axis=1)
    >>> mdp = MDP(moves, features=np.linspace(0, 1, 6)[:, None], discount=0.9, horizon=8)
    >>> expert = sample(mdp, soft_policy(mdp, mdp.reward([1.0])), 20, start=np.ones(6), random_state=0)
    >>> others = sample(mdp, soft_policy(mdp, mdp.reward([0.0])), 200, start=np.ones(6), random_state=1)
    >>> model = RelativeEntropyIRL().fit(mdp, expert, others)
    >>> bool(model.theta_[0] > 0), model.converged_
    (True, True)
    """

    _arrays: ClassVar[tuple[str, ...]] = ("start_", "feature_counts_")
    _facts: ClassVar[tuple[str, ...]] = ("effective_sample_size_", "missed_", "objective_", "converged_")

    base: Any = default("base")
    epsilon: float = default("epsilon", "RelativeEntropyIRL")
    n_samples: int = default("n_samples", "RelativeEntropyIRL")
    reference_strength: float = default("reference_strength")
    random_state: Any = None

    def fit(self, mdp: MDP, expert: TrajectoriesLike, unlabelled: TrajectoriesLike | None = None) -> Self:
        """Fit to the counts of the expert's trajectories, relative to those of the base."""
        expert, unlabelled = as_trajectories(expert, "expert"), as_trajectories(unlabelled, "unlabelled")
        self._check_arguments()
        own = isinstance(self.base, str) and self.base == "unlabelled"
        self.start_ = read_sets("RelativeEntropyIRL", mdp, expert, unlabelled, needed=NEEDED if own else "")
        if not isinstance(self.base, str):
            mdp.with_prior_policy(self.base)  # raises if it is not a policy
        target = mean_counts(mdp, expert)
        some, policy, log_weights = self._sample(mdp, expert, unlabelled)
        counts = checked_feature_counts(mdp, some, " of the base")
        unit, centre = feature_spread(mdp), counts.mean(axis=0)
        points, wanted = (counts - centre) / unit, (target - centre) / unit
        near = closest(points, np.ones(1), wanted) @ points
        self.missed_ = float(np.linalg.norm(wanted - near))
        scaled, self.converged_ = closest_to_base(near, points, log_weights, self.epsilon)
        self.objective_ = dual(scaled, near, points, log_weights)[0] - self.epsilon * float(np.abs(scaled).sum())
        likely = softmax(points @ scaled + log_weights)
        self.feature_counts_, self.effective_sample_size_ = likely @ counts, 1.0 / float(likely @ likely)
        self._set_fitted(mdp.with_prior_policy(policy), scaled / unit)
        try:
            self._set_policy()
        except NoFiniteValue as error:
            raise NoFiniteValue(
                "RelativeEntropyIRL finds weights under which endless trajectories are worth infinitely much: give the "
                "MDP a discount below 1 or a horizon, or use MESSI"
            ) from error
        if not self.converged_:
            warnings.warn(
                f"RelativeEntropyIRL did not converge with epsilon={self.epsilon:g}: raise epsilon, or give more "
                "trajectories of the base",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _sample(
        self, mdp: MDP, expert: Trajectories, unlabelled: Trajectories | None
    ) -> tuple[Trajectories, Floats, Floats]:
        """Return trajectories, the prior policy (S, A), and the logarithms of the trajectories' normalised weights."""
        base: Any = self.base
        if isinstance(base, str):
            base = uniform_rows(mdp) if base == "uniform" else None
        if unlabelled is None:
            longest = int(expert.lengths.max()) if mdp.endless else None
            table, n = np.broadcast_to(base, mdp.policy_shape), int(self.n_samples)
            some = sample(mdp, table, n, longest, self.random_state, start=self.start_)
            return some, base, np.full(n, -np.log(n))
        own = fit_population_policy(mdp, unlabelled, self.reference_strength)
        if base is None:
            return unlabelled, own, np.full(len(unlabelled), -np.log(len(unlabelled)))
        return unlabelled, base, importance(mdp, unlabelled, base, own)

    def _set_policy(self) -> None:
        self.policy_ = np.ascontiguousarray(solution_from_start(self.mdp_, self.reward_, self.start_).table)

    def _log_likelihood(self, trajectories: Trajectories) -> Floats:
        return reward_log_likelihood(self.mdp_, self.reward_, trajectories, self.start_)

    def _restore_fitted(self, parts: Any) -> None:
        super()._restore_fitted(parts)
        self._check_shapes((self.mdp_.n_states,), "start_")
        self._check_shapes((self.mdp_.n_features,), "feature_counts_")
        self._set_policy()


def dual(theta: Floats, target: Floats, counts: Floats, log_weights: Floats) -> tuple[float, Floats]:
    """Return θᵀf* − log Σ_ζ w_ζ exp(θᵀf_ζ) and its gradient f* − Σ_ζ P_ζ f_ζ, for counts (n, d), weights (n,)."""
    logs = counts @ theta + log_weights
    return float(theta @ target - logsumexp(logs)), np.asarray(target - softmax(logs) @ counts)


def importance(mdp: MDP, trajectories: Trajectories, base: Floats, own: Floats) -> Floats:
    """Return log importance weights (n,) of trajectories of the policy `own` for `base`, both (S, A); Σ w = 1."""
    logs = [log_likelihood(mdp, np.broadcast_to(policy, mdp.policy_shape), trajectories) for policy in (base, own)]
    return np.asarray(log_softmax(logs[0] - logs[1]))


def closest_to_base(target: Floats, counts: Floats, log_weights: Floats, epsilon: float) -> tuple[Floats, bool]:
    """Return the θ (d,) that maximises the dual less ε Σ_j |θ_j|, and True if the search converged.

    The search is over p, q ≥ 0 with θ = p − q, so that |θ_j| = p_j + q_j is smooth.
    """
    d = len(target)

    def loss(parts: Floats) -> tuple[float, Floats]:
        value, slope = dual(parts[:d] - parts[d:], target, counts, log_weights)
        return epsilon * float(parts.sum()) - value, epsilon - np.append(slope, -slope)

    parts, settled = np.zeros(2 * d), False
    for _ in range(RESTARTS):  # L-BFGS may stall along a poor direction, and progress after a restart
        found = minimize(
            loss,
            parts,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None)] * (2 * d),
            options={"maxiter": MAX_STEPS, "maxfun": 2 * MAX_STEPS, "ftol": 1e-15, "gtol": 0.1 * SETTLED},
        )
        parts = found.x
        left = parts - np.maximum(parts - loss(parts)[1], 0.0)  # projected gradient
        settled = bool(np.abs(left).max() <= SETTLED)
        if settled:
            break
    return parts[:d] - parts[d:], settled
