"""What is usual: a base policy from trajectories of unknown quality.

    π₀(a|s) = (n(s,a) + α/deg(s)) / (n(s) + α)      over the deg(s) actions allowed in s

with n how often an action was taken there and α the strength of the prior, under which all allowed
actions are equally likely.
Where actions were not recorded, a move is shared out among those that can make it, by how likely each makes it. The
unlabelled trajectories say what is usual; the experts, by θ, what they do differently.
"""

from __future__ import annotations

import numpy as np

from messirl._types import Floats
from messirl.data.choices import choice_mass, choices_of
from messirl.data.mdp import MDP
from messirl.data.streamed_trajectories import StreamedTrajectories
from messirl.data.sufficient_statistics import gathered
from messirl.data.trajectories import Trajectories
from messirl.data.transition_index import chances


def usual_policy(mdp: MDP, trajectories: Trajectories | StreamedTrajectories, strength: float) -> Floats:
    """π₀ (S, A), all steps and goals together; zero rows where no action is allowed."""
    return smoothed(mdp, action_counts(mdp, trajectories), strength)


def action_counts(
    mdp: MDP,
    trajectories: Trajectories | StreamedTrajectories,
    weight: Floats | None = None,
    *,
    by_step: bool = False,
) -> Floats:
    """n(s,a) (S, A): how often an action was taken, or by how likely each made the move, may have been.

    weight : (N,) what every choice counts, in the order of the trajectories; None: 1
    by_step : whether steps are kept apart, (H − 1, S, A), where there is a horizon
    """
    if isinstance(trajectories, StreamedTrajectories):
        kinds = gathered(mdp, trajectories).own
        made, totals = kinds.choices(mdp), kinds.often.astype(np.float64)
    else:
        made = choices_of(mdp, trajectories)
        totals = np.bincount(made.kind, weight, made.group.size).astype(np.float64)
    chance = np.exp(made.log_chance)
    share = chance / np.bincount(made.of, chance, made.group.size)[made.of]
    shape = mdp.policy_shape if by_step else mdp.allowed.shape
    step = made.group[made.of] if len(shape) == 3 else 0
    n = np.bincount(step * mdp.allowed.size + made.row, totals[made.of] * share, int(np.prod(shape)))
    return np.asarray(n.reshape(shape), dtype=np.float64)


def smoothed(mdp: MDP, n: Floats, strength: float, prior: Floats | None = None) -> Floats:
    """(n(s,a) + α p(a|s)) / (n(s) + α), of n (…, S, A); zero rows where no action is allowed.

    prior : p (S, A), where α is `strength`; None: all allowed actions are equally likely
    """
    if prior is None:
        prior = mdp.allowed / np.maximum(mdp.allowed.sum(axis=1, keepdims=True), 1)
    total = n.sum(axis=-1, keepdims=True) + strength
    told = mdp.allowed.any(axis=1, keepdims=True) & (total > 0.0)
    return np.where(told, (n + strength * prior) / np.where(total > 0.0, total, 1.0), prior)


def base_counts(mdp: MDP, trajectories: Trajectories) -> Floats:
    """Σ_t γ^t log π₀ of every trajectory, (n,), as if log π₀ were one more feature of a step, its weight 1."""
    assert mdp.reference is not None
    left = np.flatnonzero(trajectories.leaves)
    rows, actions = mdp.reference[trajectories.states[left]], trajectories.actions
    if actions is not None:
        usual = rows[np.arange(left.size), actions]
    else:
        possible = chances(mdp, trajectories.states[left], trajectories.states[left + 1])
        usual = (rows * possible).sum(axis=1) / possible.sum(axis=1)
    trip, n = np.repeat(np.arange(len(trajectories)), trajectories.lengths - 1), len(trajectories)
    weight = mdp.discount ** trajectories.step[left]
    seen = np.bincount(trip, weight, n)
    total = np.bincount(trip, weight * np.log(usual), n)
    return np.asarray(total * choice_mass(mdp, trajectories) / np.where(seen > 0, seen, 1.0))
