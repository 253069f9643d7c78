"""Domains: a problem with, for every run, an expert, three sources of trajectories and a measure of performance.

    P_u* near-expert,  P_1,  P_2;      μ1 = ν P_u* + (1−ν) P_1,   μ2 = ν P_u* + (1−ν) P_2,   μ3 = ν P_1 + (1−ν) P_2

Trajectory j of a mixture is the j-th draw of one of the two sources, chosen by a uniform random number of its own. So
sets with more trajectories, or another ν, differ as little as possible, and comparisons are paired.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories

MIXTURES = {"MAX": ("star", "star"), "mu1": ("star", "one"), "mu2": ("star", "two"), "mu3": ("one", "two")}


@dataclass(frozen=True)
class SyntheticTask:
    """One run of a problem with a known truth: expert trajectories, and pools of unlabelled ones.

    Attributes
    ----------
    mdp : MDP
        The problem, with its features.
    expert : Trajectories
        The expert's trajectories.
    pools : dict from str to Trajectories
        Draws of each source: "star" near-expert, "one" and "two" the others.
    coins : array
        One uniform random number per unlabelled trajectory, which decides between two sources.
    truth : array (S,) or (S, A)
        The reward that performance is measured by.
    policy : array (S, A)
        The policy of the expert, or of near-experts where the expert follows none.
    """

    mdp: MDP
    expert: Trajectories
    pools: dict[str, Trajectories]
    coins: Floats
    truth: Floats
    policy: Floats


@dataclass(frozen=True)
class Scene(SyntheticTask):
    """One run of a domain of the paper.

    Attributes
    ----------
    mdp, expert, pools, coins, truth, policy : MDP, Trajectories, dict, array, array, array
        As of every `SyntheticTask`.
    similarity : similarity
        The one that the paper uses in this domain.
    performance : callable
        From expected visits (S,) to a number; higher is better.
    thetas : dict from str to array (d,)
        The weights θ*, θ1 and θ2, where the sources follow rewards.
    """

    similarity: Any
    performance: Callable[[Floats], float]
    thetas: dict[str, Floats]


@dataclass(frozen=True)
class Domain:
    """A problem of the paper.

    Attributes
    ----------
    name : str
        Its name in tables and commands.
    mdp : MDP
        The problem, with its features.
    settings : dict
        The parameters it was made with.
    scene : callable
        From a seed to one run, a `Scene`.
    draw : callable
        Draws the problem into matplotlib's axes.
    """

    name: str
    mdp: MDP
    settings: dict[str, Any]
    scene: Callable[[int], Scene]
    draw: Callable[[Any], None]


def mixture(scene: SyntheticTask, name: str, u: int, nu: float) -> Trajectories | None:
    """Return the first u unlabelled trajectories of a mixture; None for u = 0."""
    if u == 0:
        return None
    good, other = (scene.pools[source] for source in MIXTURES[name])
    if u > len(good):
        raise ValueError(f"u={u}: must be at most {len(good)}, the draws of each source")
    first = scene.coins[:u] < nu
    # Both sources concatenated, then for each j the draw of the source that its coin selects.
    return (good[:u] + other[:u])[np.where(first, np.arange(u), u + np.arange(u))]
