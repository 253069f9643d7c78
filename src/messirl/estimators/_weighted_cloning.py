"""Weighted behaviour cloning: the base of the methods with a discriminator.

    maximise  Σ_{s,a} W(s,a) log π(a|s),   so that  π(a|s) = W(s,a) / Σ_b W(s,b)

W sums the weights of the choices of both sets. It is rescaled to their effective sample size N = (Σ v)² / Σ v² (Kish),
so that the prior has the same strength as in plain cloning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from messirl._parameters import default
from messirl._types import Floats, Ints
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.estimators._count_cloning import CountedPolicy
from messirl.estimators._prior_policy import action_counts, smoothed


@dataclass(eq=False, repr=False, kw_only=True)
class WeightedCloning(CountedPolicy):
    """Behaviour cloning of both sets, with each choice weighted by a discriminator.

    Parameters
    ----------
    discriminator : {"features", "table"}
        "features": logistic regression on f(s,a) or, with state features, on f(s) and the expected f(s') of the action.
        "table": any function of state-action pairs, in closed form. A table cannot judge pairs that no expert took, so
        that unlabelled trajectories have almost no effect.
    ridge : float
        Strength of the penalty ½ ridge ‖w‖² on the weights of standardised features.
    smoothing : float
        α, the strength of a uniform prior over the allowed actions, in choices per state.

    Attributes
    ----------
    discriminator_ : array (S, A)
        Estimated probability that an expert took the action; 0 for pairs without data.
    effective_sample_size_ : float
        Effective number of weighted choices in both sets.
    """

    _arrays: ClassVar[tuple[str, ...]] = ("discriminator_",)
    _facts: ClassVar[tuple[str, ...]] = ("effective_sample_size_",)

    discriminator: str = default("discriminator")
    ridge: float = default("ridge", "DWBC")
    smoothing: float = default("smoothing")

    def _counts_of_both(self, mdp: MDP, expert: Trajectories, unlabelled: Any) -> tuple[Floats, Floats]:
        """Count how often the experts and the unlabelled trajectories took each action, (S, A)."""
        own, others = action_counts(mdp, expert), action_counts(mdp, unlabelled)
        if not others.any():
            raise ValueError(f"no unlabelled trajectory makes a step, and {type(self).__name__} learns from those")
        return own, others

    def _judged(self, mdp: MDP, rows: Ints, sure: Floats, size: float) -> None:
        self.discriminator_ = np.zeros(mdp.allowed.shape)
        self.discriminator_.ravel()[rows] = sure
        self.effective_sample_size_ = size


def weighted_clone(mdp: MDP, sets: list[tuple[Floats, Floats]], rows: Ints, smoothing: float) -> tuple[Floats, float]:
    """Return the policy (S, A) cloned from weighted choices, and their effective sample size.

    sets : for each set its counts n (m,) and the weight v (m,) per choice of every pair; Σ n v below 0 counts as 0
    rows : (m,) the pairs, s·A + a
    """
    total = np.add.reduce([n * v for n, v in sets])
    kept = total > 0.0
    if not kept.any():
        raise ValueError("no choice has a positive weight: lower eta, delta or threshold, or raise alpha")
    squares = np.add.reduce([n * v**2 for n, v in sets])[kept].sum()
    size = float(total[kept].sum() ** 2 / squares)
    n = np.zeros(mdp.allowed.size)
    n[rows] = size * np.maximum(total, 0.0) / total[kept].sum()
    return smoothed(mdp, n.reshape(mdp.allowed.shape), smoothing), size
