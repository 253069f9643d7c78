"""Policies learned from state-action counts, without a reward: the base of behaviour cloning and its variants.

They fit one policy to all trajectories, so that goals, which need one policy each, are refused.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.data.streamed_trajectories import StreamedTrajectories, as_streamed
from messirl.data.trajectories import Trajectories
from messirl.data.validation import check_trajectories
from messirl.estimators._policy_base import PolicyEstimator
from messirl.estimators._streaming import EMPTY
from messirl.objective import check_start


class CountedPolicy(PolicyEstimator):
    """A policy estimated from state-action counts, saved as an array."""

    _arrays: ClassVar[tuple[str, ...]] = ("policy_", "start_")
    _facts: ClassVar[tuple[str, ...]] = ("converged_",)

    def _read(self, mdp: MDP, expert: Trajectories, unlabelled: Any, *, needs_unlabelled: bool) -> Any:
        """Check both sets, and return the unlabelled trajectories, in memory or in files."""
        name, unlabelled = type(self).__name__, as_streamed(unlabelled)
        check_trajectories(mdp, expert, "expert")
        if len(expert) == 0:
            raise ValueError("expert is empty: at least one trajectory is needed")
        if not (expert.lengths > 1).any():
            raise ValueError(f"no expert makes a step, so there is nothing for {name} to imitate: give longer ones")
        check_start(mdp, expert, "expert")
        if unlabelled is None and needs_unlabelled:
            raise ValueError(f"{name} needs unlabelled trajectories: give them to fit, or use BehaviourCloning")
        if unlabelled is not None and not isinstance(unlabelled, StreamedTrajectories):
            check_trajectories(mdp, unlabelled, "unlabelled")
            check_start(mdp, unlabelled, "unlabelled")
        if unlabelled is not None and len(unlabelled) == 0:
            raise ValueError(EMPTY if not needs_unlabelled else f"unlabelled is empty, and {name} learns from them")
        for some in (expert, unlabelled):
            if getattr(some, "goals", None) is not None:
                raise ValueError(
                    f"{name} learns one policy, and trajectories with goals follow one for each goal: use MaxEntIRL or "
                    "MESSI"
                )
        return unlabelled

    def _set_fitted(self, mdp: MDP, expert: Trajectories, policy: Floats, *, converged: bool = True) -> None:
        """Store the fitted policy, (S, A) for all steps, or (H − 1, S, A)."""
        self.mdp_, self.start_ = mdp, start_distribution(mdp, expert)
        self.policy_, self.converged_ = np.broadcast_to(policy, mdp.policy_shape), converged

    def _restore_fitted(self, parts: Any) -> None:
        for name, shape in (("policy_", self.mdp_.policy_shape), ("start_", (self.mdp_.n_states,))):
            array = getattr(self, name)
            if array.shape != shape or not np.isfinite(array).all() or (array < 0).any():
                raise ValueError(f"its {name} does not fit its MDP")


def start_distribution(mdp: MDP, expert: Trajectories) -> Floats:
    """Return the start distribution (S,): that of the MDP or, if it has none, that of the experts."""
    return np.bincount(expert.first, minlength=mdp.n_states) / len(expert) if mdp.start is None else mdp.start
