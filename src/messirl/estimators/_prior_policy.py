"""Population policy: a prior policy estimated from trajectories of unknown quality.

    π₀(a|s) = (n(s,a) + α/deg(s)) / (n(s) + α)      over the deg(s) actions allowed in s

with n the number of times an action was taken and α the strength of a uniform prior over the allowed actions. Where
actions were not recorded, a transition is shared among the actions in proportion to its probability under each. The
unlabelled trajectories determine the population policy; θ, how the experts differ from it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from messirl._types import Floats
from messirl.data.choices import choice_mass, choices_of
from messirl.data.mdp import MDP
from messirl.data.streamed_summary import gather_statistics
from messirl.data.streamed_trajectories import StreamedTrajectories
from messirl.data.trajectories import Trajectories
from messirl.data.transition_index import transition_probabilities


def with_prior_policy(
    mdp: MDP, reference: Any, strength: float, unlabelled: Trajectories | StreamedTrajectories | None
) -> MDP:
    """Return the MDP with a prior policy: an array (S, A), or "unlabelled" for the population policy."""
    if not isinstance(reference, str):
        return mdp.with_prior_policy(reference)
    if unlabelled is None:
        raise ValueError("reference='unlabelled' needs unlabelled trajectories: pass some to fit, or leave it out")
    return mdp.with_prior_policy(fit_population_policy(mdp, unlabelled, strength))


def fit_population_policy(mdp: MDP, trajectories: Trajectories | StreamedTrajectories, strength: float) -> Floats:
    """Estimate π₀ (S, A), pooled over steps and goals; rows without allowed actions are zero."""
    return smoothed(mdp, action_counts(mdp, trajectories), strength)


def action_counts(
    mdp: MDP,
    trajectories: Trajectories | StreamedTrajectories,
    weight: Floats | None = None,
    *,
    by_step: bool = False,
) -> Floats:
    """Count the actions taken, n(s,a) (S, A); a transition without an action is shared by its probabilities.

    weight : (N,) weight of every choice, in the order of the trajectories; None: 1
    by_step : whether to count each step separately, (H − 1, S, A), if there is a horizon
    """
    if isinstance(trajectories, StreamedTrajectories):
        kinds = gather_statistics(mdp, trajectories).own
        made, totals = kinds.choices(mdp), kinds.counts.astype(np.float64)
    else:
        made = choices_of(mdp, trajectories)
        totals = np.bincount(made.kind, weight, made.group.size).astype(np.float64)
    chance = np.exp(made.log_probability)
    share = chance / np.bincount(made.of, chance, made.group.size)[made.of]
    shape = mdp.policy_shape if by_step else mdp.allowed.shape
    step = made.group[made.of] if len(shape) == 3 else 0
    n = np.bincount(step * mdp.allowed.size + made.row, totals[made.of] * share, int(np.prod(shape)))
    return np.asarray(n.reshape(shape), dtype=np.float64)


def smoothed(mdp: MDP, n: Floats, strength: float, prior: Floats | None = None) -> Floats:
    """Return (n(s,a) + α p(a|s)) / (n(s) + α), of n (…, S, A); rows without allowed actions are zero.

    prior : p (S, A), where α is `strength`; None: uniform over the allowed actions
    """
    if prior is None:
        prior = mdp.allowed / np.maximum(mdp.allowed.sum(axis=1, keepdims=True), 1)
    total = n.sum(axis=-1, keepdims=True) + strength
    defined = mdp.allowed.any(axis=1, keepdims=True) & (total > 0.0)
    return np.where(defined, (n + strength * prior) / np.where(total > 0.0, total, 1.0), prior)


def prior_policy_counts(mdp: MDP, trajectories: Trajectories) -> Floats:
    """Return Σ_t γ^t log π₀ of every trajectory, (n,): log π₀ acts as a further feature with weight 1."""
    assert mdp.reference is not None
    left = np.flatnonzero(trajectories.leaves)
    rows, actions = mdp.reference[trajectories.states[left]], trajectories.actions
    if actions is not None:
        usual = rows[np.arange(left.size), actions]
    else:
        possible = transition_probabilities(mdp, trajectories.states[left], trajectories.states[left + 1])
        usual = (rows * possible).sum(axis=1) / possible.sum(axis=1)
    trip, n = np.repeat(np.arange(len(trajectories)), trajectories.lengths - 1), len(trajectories)
    weight = mdp.discount ** trajectories.step[left]
    seen = np.bincount(trip, weight, n)
    total = np.bincount(trip, weight * np.log(usual), n)
    return np.asarray(total * choice_mass(mdp, trajectories) / np.where(seen > 0, seen, 1.0))
