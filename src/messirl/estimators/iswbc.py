"""ISW-BC: behaviour cloning of all trajectories with importance weights from a discriminator.

    maximise  Σ_{s,a} p_U(s,a) w(s,a) log π(a|s),    w = p_E/p_U where that is at least δ, else 0

p_E and p_U are shares of choices, of the experts and of all trajectories (experts and unlabelled together). The optimal
discriminator of p_E from p_U has d/(1 − d) = p_E/p_U.

Both problems are solved exactly: the discriminator by its closed form or by Newton's method (_discriminator.py), the
policy by its closed form (_weighted_cloning.py). The paper trains two networks by stochastic gradients, with a gradient
penalty in place of the ridge. With a table p_U w = p_E, so that only the experts are cloned. Unlabelled choices matter
only if the discriminator uses features, as in the paper's theory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from messirl._parameters import default
from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.data.trajectories import TrajectoriesLike, as_trajectories
from messirl.estimators._discriminator import by_features, by_table, pair_features
from messirl.estimators._weighted_cloning import WeightedCloning, weighted_clone

MOST = 1e6  # largest ratio of densities


@dataclass(eq=False, repr=False, kw_only=True)
class ISWBC(WeightedCloning):
    """Importance-weighted behaviour cloning of experts and unlabelled trajectories together.

    maximise Σ p_U(s,a) w(s,a) log π(a|s) with w = p_E/p_U = d/(1 − d) from a discriminator; w below δ is set to 0.

    Needs actions, or the dynamics to infer them; state features also need the dynamics, for the successors of actions.
    Needs unlabelled trajectories. Goals are refused.

    Parameters
    ----------
    delta : float
        δ; smaller weights are set to 0.

    References
    ----------
    Li, Xu, Qin, Yu, Luo: Imitation Learning from Imperfection: Theoretical Justifications and Algorithms, NeurIPS 2023.

    Examples
    --------
    Six states in a row; the experts go right from the left end only, the unlabelled trajectories go anywhere.

    >>> import numpy as np
    >>> from messirl import MDP, Trajectories
    >>> from messirl.estimators import ISWBC
    >>> right = np.minimum(np.arange(6) + 1, 5)
    >>> left = np.maximum(np.arange(6) - 1, 0)
    >>> moves = np.stack([np.eye(6)[left], np.eye(6)[right]], axis=1)
    >>> way = np.stack([-np.ones((6, 1)), np.ones((6, 1))], axis=1)  # one feature of steps: to the right or not
    >>> mdp = MDP(moves, features=way, discount=0.9)
    >>> expert = Trajectories.from_lists([[0, 1, 2]] * 5, actions=[[1, 1]] * 5)
    >>> others = Trajectories.from_lists([[3, 4, 5], [5, 4, 3]] * 10, actions=[[1, 1], [0, 0]] * 10)
    >>> ISWBC().fit(mdp, expert, others).predict_proba([0, 4]).round(2)
    array([[0.08, 0.92],
           [0.11, 0.89]])
    """

    delta: float = default("delta")

    def fit(self, mdp: MDP, expert: TrajectoriesLike, unlabelled: Any = None) -> Self:
        """Fit to the experts' choices and to similar ones in the unlabelled trajectories."""
        expert, unlabelled = as_trajectories(expert, "expert"), as_trajectories(unlabelled, "unlabelled")
        self._check_arguments()
        delta, smoothing = self.delta, self.smoothing
        unlabelled = self._read(mdp, expert, unlabelled, needs_unlabelled=True)
        own, others = (n.ravel() for n in self._counts_of_both(mdp, expert, unlabelled))
        everyone = own + others
        rows = np.flatnonzero(everyone > 0.0)
        inputs = pair_features(mdp, rows) if self.discriminator == "features" else None
        sure, weight = importance(own[rows], everyone[rows], inputs, self.ridge, delta)
        policy, size = weighted_clone(mdp, [(everyone[rows], weight)], rows, smoothing)
        self._judged(mdp, rows, sure, size)
        self._set_fitted(mdp, expert, policy)
        return self


def importance(
    own: Floats, everyone: Floats, inputs: Floats | None, ridge: float, delta: float
) -> tuple[Floats, Floats]:
    """Return d and w = p_E/p_U of every pair, (m,), from counts of the experts and of all trajectories (m,).

    inputs : (m, k) input features of the discriminator; None: any function of pairs
    """
    a, union = own / own.sum(), everyone / everyone.sum()
    sure = by_table(a, a + union) if inputs is None else by_features(a, a + union, inputs, ridge)
    weight = sure / np.maximum(1.0 - sure, 1.0 / MOST)
    return sure, np.where(weight >= delta, weight, 0.0)
