"""DWBC: cloning of experts, and of those choices of others that a discriminator takes for an expert's.

The discriminator d(s, a, log π(a|s)) is taught that experts' choices are experts', and that a share η of the others'
are too (positive and unlabelled examples):

    minimise  η E_E[−log d] + E_O[−log(1 − d)] − η E_E[−log(1 − d)]                    clipped to 0.1 ≤ d ≤ 0.9

The policy then minimises, with E_E over experts' choices and E_O over the others',

    α E_E[−log π] − E_E[−log π · η/(d(1 − d))] + E_O[−log π · 1/(1 − d)]

so that π(a|s) ∝ W(s,a) = p_E (α − η/(d(1 − d))) + p_O/(1 − d), as far as it is positive. In the code of the paper's
authors choices of others with d < ½ count nothing: that is `threshold=0.5`, a step under which turns may go round.

The paper trains both networks in turns by stochastic gradients. Here each is solved exactly for the other, in turns,
until the policy stands still: a fixed point of both. Of a discriminator that is a table, log π(a|s) is a function of
(s, a) and adds nothing: d = η p_E/p_O, one turn is enough, and where d is not clipped and at least the threshold,
W = α p_E: cloning of the experts alone. The others count where the discriminator judges by features. Then there is a
fixed point, the turns being a continuous map of policies (threshold 0), but now and then they circle around it: a
warning says so, and the policy is that of the last turn.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from messirl._checks import number, whole
from messirl._types import Floats, Ints
from messirl.data.mdp import MDP
from messirl.data.trajectories import TrajectoriesLike, as_trajectories
from messirl.estimators._discriminator import by_features, by_table, pair_features
from messirl.estimators._prior_policy import smoothed
from messirl.estimators._weighted_cloning import WeightedCloning, weighted_clone

LEAST, MOST = 0.1, 0.9  # d is kept between
CLOSER, LESS = 0.98, 0.8  # a turn that does not bring both closer by this makes the next ones go less far
LEAST_MOVE = 0.02  # but not by less than this
RARE = 1e-6  # the least probability whose logarithm the discriminator sees


@dataclass(eq=False, repr=False, kw_only=True)
class DWBC(WeightedCloning):
    """Discriminator-weighted behaviour cloning: experts, and others as far as they are taken for experts.

    π(a|s) ∝ p_E (α − η/(d(1 − d))) + p_O/(1 − d) with the discriminator d(s, a, log π) of positive and unlabelled
    examples; both are solved exactly in turns until the policy stands still.

    Needs actions, or the dynamics to share moves out by; with state features the dynamics too, for where actions lead.
    Needs unlabelled trajectories. Goals are refused.

    Parameters
    ----------
    eta : float
        η, the share of experts' choices among the unlabelled ones.
    alpha : float
        α, what an expert's choice counts before it is corrected.
    threshold : float
        The least d from which on choices of others count. 0: all of them do, as the equation has it.
    max_iter : int
        Turns at most.
    tol : float
        How far a log-probability may still move in a turn.

    Attributes
    ----------
    n_iter_ : int
        Turns done.

    References
    ----------
    Xu, Zhan, Yin, Qin: Discriminator-Weighted Offline Imitation Learning from Suboptimal Demonstrations, ICML 2022.

    Examples
    --------
    Six places in a row; the experts go right from the left end only, the others go anywhere.

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

    eta: float = 0.5
    alpha: float = 7.5
    threshold: float = 0.0
    max_iter: int = 500
    tol: float = 1e-6

    def fit(self, mdp: MDP, expert: TrajectoriesLike, unlabelled: Any = None) -> Self:
        """Fit to the experts' choices and to those of the unlabelled trajectories that look like them."""
        expert, unlabelled = as_trajectories(expert, "expert"), as_trajectories(unlabelled, "unlabelled")
        self._check_discriminator()
        eta, alpha = number("eta", self.eta, above=0.0), number("alpha", self.alpha, above=0.0)
        threshold = number("threshold", self.threshold, least=0.0)
        smoothing = number("smoothing", self.smoothing, least=0.0)
        most, tol = whole("max_iter", self.max_iter), number("tol", self.tol, above=0.0)
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
            if moved > CLOSER * before:  # the two chase each other: go less far
                damping = max(LESS * damping, LEAST_MOVE)
            seen, self.n_iter_ = seen + damping * gap, self.n_iter_ + 1
        if moved > tol:
            warnings.warn(
                f"DWBC did not come to rest in max_iter={most} turns: log-probabilities still move by {moved:.2g}",
                ConvergenceWarning,
                stacklevel=2,
            )
        self._judged(mdp, rows, sure, size)
        self._learnt(mdp, expert, policy, converged=moved <= tol)
        return self


def _logs(policy: Floats, rows: Ints) -> Floats:
    """log π of the pairs, as far as the discriminator sees it."""
    return np.log(np.maximum(policy.ravel()[rows], RARE))


@dataclass(frozen=True)
class Pairs:
    """The state-action pairs that were seen, s·A + a (m,), and how often each set chose them, (m,)."""

    mdp: MDP
    rows: Ints
    own: Floats
    others: Floats

    def discriminator(self, inputs: Floats | None, eta: float, ridge: float) -> Floats:
        """d of every pair, (m,), at its minimum and clipped; inputs (m, k), or None for any function of pairs."""
        a, b = eta * self.own / self.own.sum(), self.others / self.others.sum()
        if inputs is None:  # where no other is, a pair is the experts'
            return np.clip(np.where(b > 0.0, by_table(a, b), 1.0), LEAST, MOST)
        return np.clip(by_features(a, b, inputs, ridge), LEAST, MOST)

    def policy(
        self, sure: Floats, eta: float, alpha: float, threshold: float, smoothing: float
    ) -> tuple[Floats, float]:
        """The policy (S, A) at its minimum for a discriminator (m,), and how many choices its weights amount to."""
        expert = (alpha - eta / (sure * (1.0 - sure))) / self.own.sum()
        other = np.where(sure >= threshold, 1.0 / (1.0 - sure), 0.0) / self.others.sum()
        return weighted_clone(self.mdp, [(self.own, expert), (self.others, other)], self.rows, smoothing)
