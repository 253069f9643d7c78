"""What a domain is: a problem, and for every run an expert, three sources of trajectories and a measure.

    P_u* near-expert,  P_1,  P_2;      μ1 = ν P_u* + (1−ν) P_1,   μ2 = ν P_u* + (1−ν) P_2,   μ3 = ν P_1 + (1−ν) P_2

Trajectory j of a mixture is the j-th draw of one source or of the other, by one uniform number of its own: so sets with
more trajectories, or another ν, differ from each other as little as they can, and comparisons are paired.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from messirl._types import Floats
from messirl.problem.mdp import MDP
from messirl.problem.trajectories import Trajectories

MIXTURES = {"MAX": ("star", "star"), "mu1": ("star", "one"), "mu2": ("star", "two"), "mu3": ("one", "two")}


@dataclass(frozen=True)
class Scene:
    """One run of a domain: its expert trajectories, and what unlabelled ones are drawn from."""

    mdp: MDP
    expert: Trajectories
    pools: dict[str, Trajectories]  # draws of each source
    coins: Floats  # one uniform number for each unlabelled trajectory
    similarity: Any
    performance: Callable[[Floats], float]  # of expected visits (S,), higher is better
    thetas: dict[str, Floats]  # θ*, θ1, θ2 where the sources have one


@dataclass(frozen=True)
class Domain:
    """A problem of the paper. `scene(seed)` makes one run; `draw(ax)` draws the problem."""

    name: str
    mdp: MDP
    settings: dict[str, Any]
    scene: Callable[[int], Scene]
    draw: Callable[[Any], None]


def mixture(scene: Scene, name: str, u: int, nu: float) -> Trajectories | None:
    """The first u unlabelled trajectories of a mixture; None for u = 0."""
    if u == 0:
        return None
    good, other = (scene.pools[source] for source in MIXTURES[name])
    if u > len(good):
        raise ValueError(f"u={u}: a scene holds {len(good)} draws of each source")
    first = scene.coins[:u] < nu
    # Both sources side by side, then for each j the draw of the source its coin names.
    return (good[:u] + other[:u])[np.where(first, np.arange(u), u + np.arange(u))]
