"""Behaviour cloning: estimate the policy from the experts' state-action counts.

    π(a|s) = (n(s,a) + α/deg(s)) / (n(s) + α)      over the deg(s) actions allowed in s

with n the number of times the experts took an action and α the strength of the prior. It does not use the dynamics, and
so learns nothing about states that no expert visited.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from messirl._parameters import default
from messirl.data.mdp import MDP
from messirl.data.trajectories import TrajectoriesLike, as_trajectories
from messirl.estimators._count_cloning import CountedPolicy
from messirl.estimators._prior_policy import action_counts, smoothed


@dataclass(eq=False, repr=False, kw_only=True)
class BehaviourCloning(CountedPolicy):
    """Behaviour cloning with a uniform prior over the allowed actions of every state.

    π(a|s) = (n(s,a) + α/deg(s)) / (n(s) + α): the mean of the posterior under a Dirichlet prior.

    Needs actions, or the dynamics: where actions were not recorded, a transition is shared among the actions in
    proportion to its probability under each. Uses no unlabelled trajectories. Goals are refused.

    Parameters
    ----------
    smoothing : float
        α, the strength of the prior in choices per state. 0 is maximum likelihood: in visited states, actions that no
        expert took have probability 0.
    by_step : bool
        Whether each step of a horizon has its own policy, with the policy pooled over all steps as prior.

    References
    ----------
    Pomerleau: Efficient Training of Artificial Neural Networks for Autonomous Navigation, Neural Computation 3, 1991.

    Examples
    --------
    In the first state two of three experts take the second action.

    >>> from messirl import MDP, Trajectories
    >>> from messirl.estimators import BehaviourCloning
    >>> moves = [[[0, 1, 0], [0, 0, 1]], [[0, 0, 1], [1, 0, 0]], [[0, 0, 0], [0, 0, 0]]]
    >>> mdp = MDP(moves, features=[[0.0], [1.0], [0.0]], discount=0.9, terminal=[False, False, True])
    >>> expert = Trajectories.from_lists([[0, 2], [0, 2], [0, 1, 2]], actions=[[1], [1], [0, 0]])
    >>> BehaviourCloning(smoothing=1.0).fit(mdp, expert).predict_proba([0, 1])
    array([[0.375, 0.625],
           [0.75 , 0.25 ]])
    """

    smoothing: float = default("smoothing")
    by_step: bool = default("by_step")

    def fit(self, mdp: MDP, expert: TrajectoriesLike, unlabelled: Any = None) -> Self:
        """Count the experts' actions; unlabelled trajectories are checked but not used."""
        expert, unlabelled = as_trajectories(expert, "expert"), as_trajectories(unlabelled, "unlabelled")
        self._check_arguments()
        strength, by_step = self.smoothing, self.by_step
        self._read(mdp, expert, unlabelled, needs_unlabelled=False)
        policy = smoothed(mdp, action_counts(mdp, expert), strength)
        if by_step and mdp.horizon is not None:
            policy = smoothed(mdp, action_counts(mdp, expert, by_step=True), strength, policy)
        self._set_fitted(mdp, expert, policy)
        return self
