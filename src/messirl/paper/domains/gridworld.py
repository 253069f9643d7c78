"""The grid-world (App. B.1): 16 × 16, 70 % success, 64 macro-states of 2 × 2 cells as features.

θ* is negative except for three random features; θ1 and θ2 are random. Trajectories are drawn from soft policies. The
similarity is exp(−‖Δ‖/10) on discounted counts; the performance of a policy is its mean reward θ*ᵀ f_T under θ*.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.paper.domains.domain import Domain, Scene
from messirl.paper.domains.slippery_grid import ACTIONS, coordinates, slippery, tiles
from messirl.planning import sample, soft_policy
from messirl.similarity import Exponential


def gridworld(
    *,
    side: int = 16,
    block: int = 2,
    success: float = 0.7,
    discount: float = 0.8,
    length: int = 40,
    scale: float = 10.0,
    experts: int = 1,
    pool: int = 100,
    similarity: Any = None,
) -> Domain:
    """Make the domain; `scale` multiplies θ*, θ1, θ2 where trajectories are drawn: how strictly they are followed."""
    settings = {k: v for k, v in locals().items() if k != "similarity"}
    if side % block:
        raise ValueError(f"block={block} does not divide side={side}")
    at, across = coordinates(side), side // block
    cell = at[:, 1] // block * across + at[:, 0] // block
    names = [f"block_{x}_{y}" for y in range(across) for x in range(across)]
    mdp = MDP(
        slippery(side, success),
        np.eye(across * across)[cell],
        start=np.full(side * side, 1.0 / side**2),
        discount=discount,
        action_names=ACTIONS,
        feature_names=names,
    )
    alike = Exponential(10.0) if similarity is None else similarity

    def scene(seed: int) -> Scene:
        random = np.random.RandomState(seed)
        d = mdp.n_features
        star = -random.uniform(0.1, 1.0, d)
        star[random.choice(d, 3, replace=False)] *= -1.0
        thetas = {"star": star, "one": random.uniform(-1.0, 1.0, d), "two": random.uniform(-1.0, 1.0, d)}
        policies = {k: soft_policy(mdp, mdp.reward(scale * v)) for k, v in thetas.items()}
        expert = sample(mdp, policies["star"], experts, length, random)
        pools = {k: sample(mdp, policy, pool, length, random) for k, policy in policies.items()}

        def performance(visits: Floats) -> float:
            return (1.0 - discount) * float(mdp.counts(visits) @ star)

        drawn = (expert, pools, random.random_sample(pool), mdp.reward(star), policies["star"])
        return Scene(mdp, *drawn, alike, performance, thetas)

    def draw(ax: Any) -> None:
        tiles(ax, mdp.reward(scene(0).thetas["star"]), "reward of θ*")

    return Domain("gridworld", mdp, settings, scene, draw)
