"""The difference between the experts' policy and the prior policy, by state and overall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from messirl._types import Floats, Ints
from messirl.app.workflow.ranking import ranked
from messirl.app.workflow.split import DividedProblem
from messirl.data.mdp import MDP
from messirl.data.streamed_summary import gather_statistics
from messirl.data.streamed_trajectories import StreamedTrajectories
from messirl.data.trajectories import Trajectories
from messirl.estimators._maxent_base import MaximumEntropy
from messirl.planning import log_likelihood


@dataclass(frozen=True, eq=False)
class PolicyChange:
    """The difference between a policy π learnt from experts and the prior policy π₀.

    Attributes
    ----------
    base, policy : array (S, A)
        π₀, and π at the first step or, with goals, for the goal shown.
    log_ratio : array (S, A)
        log π/π₀; zero where an action is not allowed.
    divergence : array (S,)
        Σ_a π log π/π₀ in nats: the KL divergence from the prior policy in each state.
    usual, raised : array of int (S,)
        The likeliest action under π₀, and the one whose increase contributes most to the divergence; −1 where only one
        action is allowed.
    others, experts : array of int (S,)
        The numbers of choices of the unlabelled and of the expert's trajectories in each state.
    order : array of int
        The states in which a trajectory made a choice, ordered by expected visits times divergence, the largest first.
    mean : float
        The divergence per choice, averaged over the expected visits.
    expert, held_out : float or None
        The log-probability per step of the expert's and the held-out trajectories under π₀.
    """

    base: Floats
    policy: Floats
    log_ratio: Floats
    divergence: Floats
    usual: Ints
    raised: Ints
    others: Ints
    experts: Ints
    order: Ints
    mean: float
    expert: float
    held_out: float | None = None

    def summary(self) -> dict[str, Any]:
        """Return the entry of fit.json."""
        return {"expert": self.expert, "held_out": self.held_out, "mean_divergence": self.mean}


def policy_change(model: MaximumEntropy, policy: Floats | None, parts: DividedProblem) -> PolicyChange | None:
    """Return the difference between a fitted model and its prior policy; None without one, or without any choice.

    policy : π (S, A) of the model, at the first step or for one goal
    """
    mdp = model.mdp_
    if mdp.reference is None or policy is None:
        return None
    base, allowed = mdp.reference, mdp.allowed & (policy > 0)
    ratio = np.zeros(policy.shape)
    ratio[allowed] = np.log(policy[allowed] / base[allowed])
    parts_of_it = policy * ratio
    divergence = np.maximum(parts_of_it.sum(axis=1), 0.0)
    choosing = (mdp.allowed.sum(axis=1) > 1) & (policy.sum(axis=1) > 0)
    others, experts = (_choices(mdp, some) for some in (parts.unlabelled, parts.expert))
    visits = np.where(choosing, np.nan_to_num(model.visitation_), 0.0)
    order = ranked(visits * divergence)
    return PolicyChange(
        base,
        policy,
        ratio,
        divergence,
        np.where(choosing, base.argmax(axis=1), -1),
        np.where(choosing, parts_of_it.argmax(axis=1), -1),
        others,
        experts,
        order[(choosing & (others + experts > 0))[order]],
        float(visits @ divergence / max(visits.sum(), 1e-300)),
        prior_score(mdp, parts.expert),
        None if parts.test is None else prior_score(mdp, parts.test),
    )


def prior_score(mdp: MDP, trajectories: Trajectories) -> float:
    """Return the log-probability per step of trajectories under the prior policy of the MDP."""
    base: Any = np.broadcast_to(np.asarray(mdp.reference), mdp.policy_shape)
    if trajectories.goals is not None:
        base = dict.fromkeys(np.unique(trajectories.goals).tolist(), mdp.reference)
    steps = int((trajectories.lengths - 1).sum())
    return float(log_likelihood(mdp, base, trajectories).sum() / max(steps, 1))


def _choices(mdp: MDP, some: Trajectories | StreamedTrajectories | None) -> Ints:
    """Return the number of choices made in each state, (S,)."""
    if isinstance(some, StreamedTrajectories):
        kinds = gather_statistics(mdp, some).own
        return np.bincount(kinds.choices(mdp).state, kinds.counts, mdp.n_states).astype(np.int64)
    if some is None:
        return np.zeros(mdp.n_states, dtype=np.int64)
    return np.bincount(some.states[some.leaves], minlength=mdp.n_states)
