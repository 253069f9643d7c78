"""DWBC: discriminator-weighted behaviour cloning of experts and unlabelled trajectories.

The discriminator d(s, a, log π(a|s)) is trained on positive and unlabelled examples: the experts' choices, and the
unlabelled choices, of which a share η are assumed to be experts':

    minimise  η E_E[−log d] + E_O[−log(1 − d)] − η E_E[−log(1 − d)]                    clipped to 0.1 ≤ d ≤ 0.9

The policy then minimises, with E_E over experts' choices and E_O over unlabelled ones,

    α E_E[−log π] − E_E[−log π · η/(d(1 − d))] + E_O[−log π · 1/(1 − d)]

so that π(a|s) ∝ max(W(s,a), 0) with W = p_E (α − η/(d(1 − d))) + p_O/(1 − d). The code of the paper's authors ignores
unlabelled choices with d < ½: that is `threshold=0.5`, a discontinuity at which the iteration may cycle.

The paper trains both networks alternately by stochastic gradients. Here each is solved exactly given the other, until
the policy converges to a fixed point of both. For a tabular discriminator log π(a|s) is a function of (s, a) and adds
nothing: d = η p_E/p_O, one iteration is enough, and where d is not clipped and at least the threshold, W = α p_E:
cloning of the experts only. Unlabelled choices matter if the discriminator uses features. Then a fixed point exists,
since an iteration is a continuous map of policies (threshold 0), but iterations sometimes cycle around it. A warning
then says so, and the policy is that of the last iteration.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from messirl._parameters import default
from messirl._types import Floats, Ints
from messirl.data.mdp import MDP
from messirl.data.trajectories import TrajectoriesLike, as_trajectories
from messirl.estimators._discriminator import by_features, by_table, pair_features
from messirl.estimators._prior_policy import smoothed
from messirl.estimators._weighted_cloning import WeightedCloning, weighted_clone

LEAST, MOST = 0.1, 0.9  # d is clipped to this range
CLOSER, LESS = 0.98, 0.8  # if the change shrinks by less than the factor CLOSER, the damping is multiplied by LESS
LEAST_MOVE = 0.02  # smallest damping factor
RARE = 1e-6  # smaller probabilities are raised to this in the inputs of the discriminator


@dataclass(eq=False, repr=False, kw_only=True)
class DWBC(WeightedCloning):
    """Discriminator-weighted behaviour cloning of experts and unlabelled trajectories.

    π(a|s) ∝ p_E (α − η/(d(1 − d))) + p_O/(1 − d) with the discriminator d(s, a, log π) of positive and unlabelled
    examples; both are solved exactly in alternation until the policy converges.

    Needs actions, or the dynamics to infer them; state features also need the dynamics, for the successors of actions.
    Needs unlabelled trajectories. Goals are refused.

    Parameters
    ----------
    eta : float
        η, the share of experts' choices among the unlabelled ones.
    alpha : float
        α, the weight of an expert's choice before the correction.
    threshold : float
        Smallest d at which unlabelled choices count. 0: all of them count, as in the equation.
    max_iter : int
        Maximum number of iterations.
    tol : float
        Largest change of a log-probability in an iteration at convergence.

    Attributes
    ----------
    n_iter_ : int
        Number of iterations.

    References
    ----------
    Xu, Zhan, Yin, Qin: Discriminator-Weighted Offline Imitation Learning from Suboptimal Demonstrations, ICML 2022.

    Examples
    --------
    Six states in a row; the experts go right from the left end only, the unlabelled trajectories go anywhere.

    >>> import numpy as np
    >>> from messirl import MDP, Trajectories
    >>> from messirl.estimators import DWBC
    >>> right = np.minimum(np.arange(6) + 1, 5)
    >>> left = np.maximum(np.arange(6) - 1, 0)
    >>> moves = np.stack([np.eye(6)[left], np.eye(6)[right]], axis=1)
    >>> way = np.stack([-np.ones((6, 1)), np.ones((6, 1))], axis=1)  # one feature of steps: to the right or not
    >>> mdp = MDP(moves, features=way, discount=0.9)
    >>> expert = Trajectories.from_lists([[0, 1, 2]] * 5, actions=[[1, 1]] * 5)
    >>> others = Trajectories.from_lists([[3, 4, 5], [5, 4, 3]] * 10, actions=[[1, 1], [0, 0]] * 10)
    >>> DWBC().fit(mdp, expert, others).predict_proba([0, 4]).round(2)
    array([[0.06, 0.94],
           [0.18, 0.82]])
    """

    _facts: ClassVar[tuple[str, ...]] = ("n_iter_",)

    eta: float = default("eta", "DWBC")
    alpha: float = default("alpha", "DWBC")
    threshold: float = default("threshold")
    max_iter: int = default("max_iter", "DWBC")
    tol: float = default("tol", "DWBC")

    def fit(self, mdp: MDP, expert: TrajectoriesLike, unlabelled: Any = None) -> Self:
        """Fit to the experts' choices and to similar ones in the unlabelled trajectories."""
        expert, unlabelled = as_trajectories(expert, "expert"), as_trajectories(unlabelled, "unlabelled")
        self._check_arguments()
        eta, alpha, threshold, smoothing = self.eta, self.alpha, self.threshold, self.smoothing
        most, tol = self.max_iter, self.tol
        unlabelled = self._read(mdp, expert, unlabelled, needs_unlabelled=True)
        own, others = self._counts_of_both(mdp, expert, unlabelled)
        rows = np.flatnonzero((own + others).ravel() > 0.0)
        choices = Pairs(mdp, rows, own.ravel()[rows], others.ravel()[rows])
        inputs = pair_features(mdp, rows) if self.discriminator == "features" else None
        seen, damping, moved, self.n_iter_ = _logs(smoothed(mdp, own, smoothing), rows), 1.0, np.inf, 0
        while moved > tol and self.n_iter_ < most:
            told = None if inputs is None else np.column_stack([inputs, seen])
            sure = choices.discriminator(told, eta, self.ridge)
            policy, size = choices.policy(sure, eta, alpha, threshold, smoothing)
            gap, before = _logs(policy, rows) - seen, moved
            moved = 0.0 if inputs is None else float(np.abs(gap).max())
            if moved > CLOSER * before:  # the iteration cycles: increase the damping
                damping = max(LESS * damping, LEAST_MOVE)
            seen, self.n_iter_ = seen + damping * gap, self.n_iter_ + 1
        if moved > tol:
            warnings.warn(
                f"DWBC did not converge in max_iter={most} iterations: log-probabilities still change by {moved:.2g}, "
                f"more than tol={tol:g}. Raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        self._judged(mdp, rows, sure, size)
        self._set_fitted(mdp, expert, policy, converged=moved <= tol)
        return self


def _logs(policy: Floats, rows: Ints) -> Floats:
    """Return log π of the pairs, bounded below, as input of the discriminator."""
    return np.log(np.maximum(policy.ravel()[rows], RARE))


@dataclass(frozen=True)
class Pairs:
    """The observed state-action pairs, s·A + a (m,), and their counts in each set, (m,)."""

    mdp: MDP
    rows: Ints
    own: Floats
    others: Floats

    def discriminator(self, inputs: Floats | None, eta: float, ridge: float) -> Floats:
        """Return the clipped optimal d of every pair, (m,); inputs (m, k), or None for any function of pairs."""
        a, b = eta * self.own / self.own.sum(), self.others / self.others.sum()
        if inputs is None:  # pairs without unlabelled choices are the experts'
            return np.clip(np.where(b > 0.0, by_table(a, b), 1.0), LEAST, MOST)
        return np.clip(by_features(a, b, inputs, ridge), LEAST, MOST)

    def policy(
        self, sure: Floats, eta: float, alpha: float, threshold: float, smoothing: float
    ) -> tuple[Floats, float]:
        """Return the optimal policy (S, A) for a discriminator (m,), and the effective sample size of its weights."""
        expert = (alpha - eta / (sure * (1.0 - sure))) / self.own.sum()
        other = np.where(sure >= threshold, 1.0 / (1.0 - sure), 0.0) / self.others.sum()
        return weighted_clone(self.mdp, [(self.own, expert), (self.others, other)], self.rows, smoothing)
