"""Bayesian IRL, Ramachandran and Amir 2007: the posterior of the reward given the experts' choices.

    P(θ | Σ*) ∝ P(θ) Π_ζ Π_t exp(β Q*_θ(s_t, a_t)) / Σ_b exp(β Q*_θ(s_t, b))

Q* are the optimal action values: the experts follow their Boltzmann policy with inverse temperature β. Where actions
were not recorded, a step has the probability Σ_a π(a|s) p(s'|s, a). The prior is normal, or uniform in a box.

Metropolis chains (_mcmc.py) sample the posterior, in units of one over the features' spread. The original walks on a
grid of rewards, one per state; weights of features allow a continuous walk, whose proposals adapt to the posterior.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning

from messirl._parameters import default
from messirl._types import Floats
from messirl.data.feature_scale import feature_spread
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories, TrajectoriesLike, as_trajectories
from messirl.estimators._input_checks import check_bounded, read_sets
from messirl.estimators._mcmc import draw_chains, effective_sample_size, r_hat
from messirl.estimators._reward_base import RewardEstimator
from messirl.planning import optimal_values
from messirl.planning.likelihood import action_values, step_logs, sum_of_steps
from messirl.planning.sampling import random_source

PRIORS = ("normal", "uniform")
MIXED = 1.1  # largest R-hat of chains that count as mixed


@dataclass(eq=False, repr=False, kw_only=True)
class BayesianIRL(RewardEstimator):
    """Bayesian inverse reinforcement learning: draws from the posterior of θ, and its mean.

    It needs the dynamics, and the experts' trajectories, with actions or without. It does not use unlabelled
    trajectories. Every draw solves the MDP once. With more than a few dozen features the chains mix slowly, as `rhat_`
    shows.

    Parameters
    ----------
    beta : float
        β, the inverse temperature of the experts' policy; it multiplies θ, so that only the prior separates the two.
    prior : {"normal", "uniform"}
        Prior of every weight: normal around 0, or uniform in an interval around 0.
    prior_scale : float
        Standard deviation of the prior, or half the width of the interval, in units of one over the spread of the
        feature.
    n_chains : int
        Number of chains, each with its own start; at least 2.
    n_warm_up : int
        Warm-up draws of each chain, in which the proposals adapt; they are discarded.
    n_samples : int
        Draws of each chain that are kept; at least 4.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        Random source of the draws.

    Attributes
    ----------
    theta_ : array (d,)
        The posterior mean.
    policy_ : array (S, A), or (H − 1, S, A) with a horizon
        The model's policy at the posterior mean, π(a|s) ∝ exp(β Q*(s, a)).
    samples_ : array (n_chains, n_samples, d)
        The draws of θ.
    rhat_ : array (d,)
        R-hat of each weight: near 1 if the chains agree.
    ess_ : array (d,)
        Effective sample size of each weight.
    acceptance_ : array (n_chains,)
        Acceptance rate of each chain.
    converged_ : bool
        Whether every R-hat is at most 1.1.

    References
    ----------
    Ramachandran, Amir: Bayesian Inverse Reinforcement Learning, IJCAI 2007. Gelman, Carlin, Stern, Dunson, Vehtari,
    Rubin: Bayesian Data Analysis, third edition, 2013, section 11.4.

    Examples
    --------
    Six states in a row; the experts prefer the right end, where the feature is 1.

    >>> import numpy as np
    >>> from messirl import MDP, sample, soft_policy
    >>> from messirl.estimators import BayesianIRL
    >>> right = np.minimum(np.arange(6) + 1, 5)
    >>> left = np.maximum(np.arange(6) - 1, 0)
    >>> moves = np.stack([np.eye(6)[left], np.eye(6)[right]], axis=1)
    >>> mdp = MDP(moves, features=np.linspace(0, 1, 6)[:, None], discount=0.9, horizon=8)
    >>> expert = sample(mdp, soft_policy(mdp, mdp.reward([2.0])), 20, start=np.ones(6), random_state=0)
    >>> model = BayesianIRL(random_state=0).fit(mdp, expert)
    >>> model.samples_.shape, model.converged_, bool((model.samples_ > 0).all())
    ((4, 500, 1), True, True)
    """

    _arrays: ClassVar[tuple[str, ...]] = ("start_", "samples_", "rhat_", "ess_", "acceptance_")
    _facts: ClassVar[tuple[str, ...]] = ("converged_",)

    beta: float = default("beta")
    prior: str = default("prior")
    prior_scale: float = default("prior_scale")
    n_chains: int = default("n_chains")
    n_warm_up: int = default("n_warm_up")
    n_samples: int = default("n_samples", "BayesianIRL")
    random_state: Any = None

    def fit(self, mdp: MDP, expert: TrajectoriesLike, unlabelled: Any = None) -> Self:
        """Draw from the posterior given the expert's trajectories; `unlabelled` is not used."""
        expert, unlabelled = as_trajectories(expert, "expert"), as_trajectories(unlabelled, "unlabelled")
        self._check_arguments()
        scale, chains, draws, warm_up = self.prior_scale, self.n_chains, self.n_samples, self.n_warm_up
        self.start_ = read_sets("BayesianIRL", mdp, expert)
        check_bounded("BayesianIRL", mdp)
        self.mdp_, unit = mdp, feature_spread(mdp)
        posterior, random = Posterior(mdp, expert, self.beta, self.prior, scale), random_source(self.random_state)
        begin, steps = posterior.beginnings(chains, random), np.full(unit.size, 0.1 * scale)
        seen, self.acceptance_ = draw_chains(posterior, begin, steps, warm_up, draws, random)
        self.samples_ = seen / unit
        self.rhat_, self.ess_ = r_hat(self.samples_), effective_sample_size(self.samples_)
        self.converged_ = bool(self.rhat_.max() <= MIXED)
        self._set_fitted(mdp, self.samples_.mean(axis=(0, 1)))
        self._set_policy()
        if not self.converged_:
            worst = int(np.argmax(self.rhat_))
            warnings.warn(
                f"BayesianIRL did not converge: R-hat of the weight of {mdp.feature_label(worst)} is "
                f"{self.rhat_[worst]:.2f}, above {MIXED}: raise n_warm_up or n_samples",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _set_policy(self) -> None:
        self._log_policy_ = log_boltzmann(self.mdp_, self.reward_, self.beta)
        self.policy_ = np.exp(self._log_policy_)

    def _log_likelihood(self, trajectories: Trajectories) -> Floats:
        return sum_of_steps(self.mdp_, self._log_policy_, trajectories)

    def _restore_fitted(self, parts: Any) -> None:
        super()._restore_fitted(parts)
        d = self.mdp_.n_features
        self._check_shapes((self.mdp_.n_states,), "start_")
        self._check_shapes((*self.samples_.shape[:2], d), "samples_")
        self._set_policy()


class Posterior:
    """log P(θ | Σ*) up to a constant, for θ in units of one over the features' spread.

    mdp, expert : the problem, and the experts' trajectories
    beta, prior, scale : parameters of `BayesianIRL`
    """

    def __init__(self, mdp: MDP, expert: Trajectories, beta: float, prior: str, scale: float) -> None:
        self.mdp, self.expert, self.beta, self.scale = mdp, expert, beta, scale
        self.unit, self.normal = feature_spread(mdp), prior == "normal"

    def __call__(self, x: Floats) -> float:
        """Return the log-density; −inf outside the box."""
        if not self.normal and np.abs(x).max() > self.scale:
            return -np.inf
        log_policy = log_boltzmann(self.mdp, self.mdp.reward(x / self.unit), self.beta)
        likely = float(step_logs(self.mdp, log_policy, self.expert).sum())
        return likely - 0.5 * float(x @ x) / self.scale**2 if self.normal else likely

    def beginnings(self, n: int, random: np.random.RandomState) -> Floats:
        """Draw starts from the prior, (n, d)."""
        shape = (n, self.unit.size)
        at = self.scale * (random.standard_normal(shape) if self.normal else random.uniform(-1.0, 1.0, shape))
        if not np.isfinite(self(at[0])):
            raise ValueError("expert: a trajectory risks a dead end, which has probability 0 in the model: drop it")
        return np.asarray(at)


def log_boltzmann(mdp: MDP, reward: Floats, beta: float) -> Floats:
    """Return log π(a|s) = β Q*(s, a) − log Σ_b exp(β Q*(s, b)), (S, A) or (H − 1, S, A); −inf if never taken."""
    q = action_values(mdp, reward, optimal_values(mdp, reward))
    taken = mdp.allowed & ~mdp.terminal[:, None] & np.isfinite(q)
    some = taken.any(axis=-1, keepdims=True)
    logs = log_softmax(np.where(taken, beta * q, np.where(some, -np.inf, 0.0)), axis=-1)
    return np.where(taken, logs, -np.inf).reshape(mdp.policy_shape)
