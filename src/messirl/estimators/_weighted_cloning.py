"""Cloning in which choices weigh more or less: what the methods with a discriminator have in common.

    maximise  Σ_{s,a} W(s,a) log π(a|s),   so that  π(a|s) = W(s,a) / Σ_b W(s,b)

W adds up the weights of the choices of both sets. It is given the size of the choices that such weights amount to,
N = (Σ v)² / Σ v² over choices (Kish), and the prior of cloning then counts as it does there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from messirl._types import Floats, Ints
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.estimators._count_cloning import CountedPolicy
from messirl.estimators._discriminator import checked_discriminator
from messirl.estimators._prior_policy import action_counts, smoothed


@dataclass(eq=False, repr=False, kw_only=True)
class WeightedCloning(CountedPolicy):
    """Cloning of experts and others, each choice weighed by how much a discriminator takes it for an expert's.

    Parameters
    ----------
    discriminator : {"features", "table"}
        What tells experts' choices from others': a function linear in features, f(s,a), or of state features f(s) and
        the mean of f(s') where the action leads; or any function of state-action pairs, in closed form. A table knows
        nothing of pairs that no expert took: with it, unlabelled trajectories say next to nothing.
    ridge : float
        The penalty ½ ridge ‖w‖² on the weights of features in units of their spread.
    smoothing : float
        α, how many choices per state the prior counts as, under which all allowed actions are equally likely.

    Attributes
    ----------
    discriminator_ : array (S, A)
        How sure it is that an expert took the action, between 0 and 1; 0 for what nobody did.
    effective_sample_size_ : float
        How many choices the weighted ones of both sets amount to.
    """

    _arrays: ClassVar[tuple[str, ...]] = ("discriminator_",)
    _facts: ClassVar[tuple[str, ...]] = ("effective_sample_size_",)

    discriminator: str = "features"
    ridge: float = 0.1
    smoothing: float = 1.0

    def _check_discriminator(self) -> None:
        checked_discriminator(self.discriminator, self.ridge)

    def _counts_of_both(self, mdp: MDP, expert: Trajectories, unlabelled: Any) -> tuple[Floats, Floats]:
        """How often the experts and the others took each action, (S, A)."""
        own, others = action_counts(mdp, expert), action_counts(mdp, unlabelled)
        if not others.any():
            raise ValueError(f"no unlabelled trajectory makes a step, and {type(self).__name__} learns from those")
        return own, others

    def _judged(self, mdp: MDP, rows: Ints, sure: Floats, size: float) -> None:
        self.discriminator_ = np.zeros(mdp.allowed.shape)
        self.discriminator_.ravel()[rows] = sure
        self.effective_sample_size_ = size


def weighted_clone(mdp: MDP, sets: list[tuple[Floats, Floats]], rows: Ints, smoothing: float) -> tuple[Floats, float]:
    """The policy (S, A) that weighted choices of some sets lead to, and how many choices they amount to.

    sets : for each its counts n (m,) and the weight v (m,) of one choice, pair by pair; Σ n v below 0 counts as 0
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
