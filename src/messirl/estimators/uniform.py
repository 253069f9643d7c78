"""The uniform policy, the baseline of every other method."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from messirl._types import Floats, Ints
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories, TrajectoriesLike, as_trajectories
from messirl.data.validation import check_trajectories
from messirl.estimators._policy_base import PolicyEstimator
from messirl.planning import log_likelihood


class UniformPolicy(PolicyEstimator):
    """The policy that takes every allowed action with the same probability.

    `fit` uses only the first states and the goals of the trajectories.

    Examples
    --------
    Of the three states the first allows both actions and the second allows one; the third is terminal.

    >>> from messirl import MDP, Trajectories
    >>> from messirl.estimators import UniformPolicy
    >>> moves = [[[0, 1, 0], [0, 0, 1]], [[0, 0, 1], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]]]
    >>> mdp = MDP(moves, features=[[0.0], [1.0], [0.0]], discount=0.9, terminal=[False, False, True])
    >>> UniformPolicy().fit(mdp, Trajectories.from_lists([[0, 1, 2]])).predict_proba([0, 1])
    array([[0.5, 0.5],
           [1. , 0. ]])
    """

    _arrays: ClassVar[tuple[str, ...]] = ("start_",)
    _optional: ClassVar[tuple[str, ...]] = ("goals_",)

    def fit(self, mdp: MDP, expert: TrajectoriesLike) -> Self:
        """Set `policy_` for the MDP."""
        expert = as_trajectories(expert, "expert")
        check_trajectories(mdp, expert, "expert")
        own = np.bincount(expert.first, minlength=mdp.n_states) / max(len(expert), 1)
        self.mdp_, self.start_ = mdp, own if mdp.start is None else mdp.start
        self.goals_ = None if expert.goals is None else np.unique(expert.goals)
        self._restore_fitted({})
        return self

    def _restore_fitted(self, parts: Any) -> None:
        self.policy_, self.converged_ = uniform_policy(self.mdp_, self.goals_), True

    def _log_likelihood(self, trajectories: Trajectories) -> Floats:  # goals need not be those of the fit
        return uniform_logs(self.mdp_, trajectories)


def uniform_score(mdp: MDP, trajectories: Trajectories) -> float:
    """Return the mean log-probability per step under the uniform policy."""
    steps = int((trajectories.lengths - 1).sum())
    return float(uniform_logs(mdp, trajectories).sum() / max(steps, 1))


def uniform_logs(mdp: MDP, trajectories: Trajectories) -> Floats:
    """Return the log-probability of each trajectory under the uniform policy, (n,)."""
    return log_likelihood(mdp, uniform_policy(mdp, trajectories.goals), trajectories)


def uniform_policy(mdp: MDP, goals: Ints | None) -> Any:
    """Return the uniform policy in the form of `policy_`: an array, or a mapping if there are goals."""
    if goals is not None:
        return dict.fromkeys(np.unique(goals).tolist(), uniform_rows(mdp))
    return np.broadcast_to(uniform_rows(mdp), mdp.policy_shape)


def uniform_rows(mdp: MDP) -> Floats:
    """Return the uniform policy of one step, (S, A); zero where no action is allowed."""
    return np.asarray(mdp.allowed / np.maximum(mdp.allowed.sum(axis=1, keepdims=True), 1))
