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
from messirl.problem.choices import choice_mass, choices_of
from messirl.problem.gathered import gathered
from messirl.problem.mdp import MDP
from messirl.problem.moves import chances
from messirl.problem.streamed import StreamedTrajectories
from messirl.problem.trajectories import Trajectories


def usual_policy(mdp: MDP, trajectories: Trajectories | StreamedTrajectories, strength: float) -> Floats:
    """π₀ (S, A), all steps and goals together; zero rows where no action is allowed."""
    if isinstance(trajectories, StreamedTrajectories):
        kinds = gathered(mdp, trajectories).own
        made, totals = kinds.choices(mdp), kinds.often.astype(np.float64)
    else:
        made = choices_of(mdp, trajectories)
        totals = made.totals(np.ones(len(trajectories)))
    chance = np.exp(made.log_chance)
    share = chance / np.bincount(made.of, chance, made.group.size)[made.of]
    n = np.bincount(made.row, totals[made.of] * share, mdp.allowed.size).reshape(mdp.allowed.shape)
    degree = mdp.allowed.sum(axis=1, keepdims=True)
    prior = np.where(mdp.allowed, strength / np.maximum(degree, 1), 0.0)
    return np.asarray(np.where(degree > 0, (n + prior) / (n.sum(axis=1, keepdims=True) + strength), 0.0))


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
