"""Sufficient statistics of weighted trajectories: all that the likelihood needs of them, at any θ.

    counts     f* = Σ_i w_i f_i, for feature matching
    choices    c Σ_i w_i n_i(k) of each kind k of choice (choices.py), for the likelihood of choices
    start      Σ_i w_i 1{ζ_i begins in s}; with goals, the first state, goal and weight of every trajectory

The weights sum to one. The record is the same for trajectories in memory and, by their summary (streamed_summary.py),
for trajectories in files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from messirl._types import Floats, Ints
from messirl.data.choices import Choices, choice_keys, choice_mass, choices_of
from messirl.data.chunked_reduce import summed
from messirl.data.mdp import MDP
from messirl.data.streamed_summary import ChoiceCounts, StreamedStatistics
from messirl.data.trajectories import Trajectories


@dataclass(frozen=True, eq=False)
class SufficientStatistics:
    """Statistics of weighted trajectories, for counts or for choices.

    size : N, the sum of the weights that were given
    squares : Σ w², of the weights that sum to one
    start : (S,) the MDP's own start or, if it has none, the distribution of first states; None with goals
    trips : with goals, the first state, goal and weight of every trajectory
    counts : (d,) f*; None for choices
    choices, totals : the kinds of choices and the weight of each, c included, (K,); None for counts
    scale : c = Σ w_i M_i / Σ w_i T_i, with T_i the choices of a trajectory and M_i their discounted mass
    """

    size: float
    squares: float
    start: Floats | None
    trips: tuple[Ints, Ints, Floats] | None = None
    counts: Floats | None = None
    choices: Choices | None = None
    totals: Floats | None = None
    scale: float = 1.0


def statistics_of(
    mdp: MDP, trajectories: Trajectories, weights: Floats, size: float, counts: Floats | None = None
) -> SufficientStatistics:
    """Return the statistics of trajectories in memory, with weights (n,) that sum to one.

    counts : (n, d) their feature counts, for feature matching; None for choices
    """
    start, trips = mdp.start, None
    if trajectories.goals is not None:
        start, trips = None, (trajectories.first, trajectories.goals, weights)
    elif start is None:
        start = np.bincount(trajectories.first, weights, mdp.n_states).astype(np.float64)
    shared: dict[str, Any] = {"size": size, "squares": float(weights @ weights), "start": start, "trips": trips}
    if counts is not None:
        return SufficientStatistics(**shared, counts=weights @ counts)
    scale = _scale(mdp, float(weights @ (trajectories.lengths - 1)), float(weights @ choice_mass(mdp, trajectories)))
    choices = choices_of(mdp, trajectories)
    return SufficientStatistics(**shared, choices=choices, totals=choices.totals(scale * weights), scale=scale)


def pooled_statistics(
    mdp: MDP,
    expert: Trajectories,
    others: StreamedStatistics,
    own: Floats,
    light: float,
    kinds: ChoiceCounts,
    counts: Floats | None,
) -> SufficientStatistics:
    """Return the statistics of an expert's trajectories in memory, and of others by their summary.

    own : (l,) the weights of the expert's trajectories
    light : the weight of each of the others
    kinds : of the choices of the others, by action only if all trajectories have actions
    counts : (l, d) feature counts of the expert's, for feature matching; None for choices
    """
    top = max(float(own.max()), light)
    share = float((own / top).sum()) + others.size * (light / top)  # finite, however large the weights
    weights, weight = own / top / share, light / top / share
    start = mdp.start
    if start is None:
        start = np.bincount(expert.first, weights, mdp.n_states) + weight * others.first
    shared: dict[str, Any] = {
        "size": float(own.sum()) + others.size * light,
        "squares": float(weights @ weights) + others.size * weight**2,
        "start": start,
    }
    if counts is not None:
        return SufficientStatistics(**shared, counts=weights @ counts + weight * summed(others.counts))
    made = float(weights @ (expert.lengths - 1)) + weight * others.made
    scale = _scale(mdp, made, float(weights @ choice_mass(mdp, expert)) + weight * others.mass)
    keys = choice_keys(mdp, expert, recorded=kinds.recorded)
    trip = np.repeat(np.arange(len(expert)), expert.lengths - 1)
    both, at = np.unique(np.concatenate([keys, kinds.keys]), return_inverse=True)
    much = np.concatenate([scale * weights[trip], scale * weight * kinds.counts])
    totals = np.bincount(at, much, both.size).astype(np.float64)
    return SufficientStatistics(
        **shared, choices=ChoiceCounts(kinds.recorded, both).choices(mdp), totals=totals, scale=scale
    )


def _scale(mdp: MDP, made: float, mass: float) -> float:
    """Return c, from the number of the choices made and their mass."""
    if made == 0.0 and mdp.horizon != 1:  # with horizon 1 there are no choices
        raise ValueError(
            "no trajectory makes a step, so there is no choice to learn from: give longer trajectories, or use "
            "objective='counts'"
        )
    return mass / (made or 1.0)
