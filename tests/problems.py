"""One problem of each kind, with expert and unlabelled trajectories: what every estimator must cope with."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from worlds import drawn, maze, random_mdp

from messirl import MDP, Trajectories

THETA = np.array([3.0, -2.0, 1.0])
KINDS = ["finite", "endless", "episodic", "goals", "steps", "sparse"]


class Problem(NamedTuple):
    mdp: MDP
    expert: Trajectories
    unlabelled: Trajectories


@cache
def problem(kind: str) -> Problem:
    """finite: a horizon; endless: discounted; episodic: γ = 1 with an end; goals: γ = 1, one end a trajectory;
    steps: state-action features; sparse: the same, stored sparse."""
    start = np.full(5, 0.2)
    if kind == "endless":
        mdp = random_mdp(1, discount=0.8, start=start)
        return Problem(mdp, drawn(mdp, THETA, 30, 1, length=15), drawn(mdp, -THETA, 8, 2, length=15))
    if kind == "episodic":
        mdp = maze(discount=1.0, terminal=np.arange(9) == 8)
        anywhere = np.full(9, 1 / 9)
        return Problem(
            mdp, drawn(mdp, [-2.0, -0.5], 12, 1, start=anywhere), drawn(mdp, [-1.5, 0.0], 8, 2, start=anywhere)
        )
    if kind == "goals":
        mdp = maze(discount=1.0)
        anywhere = np.full(9, 1 / 9)
        expert, unlabelled = (
            drawn(mdp, theta, 8, seed, start=anywhere, goal=8) + drawn(mdp, theta, 6, seed + 1, start=anywhere, goal=2)
            for theta, seed in (([-2.0, -0.5], 1), ([-1.5, 0.0], 3))
        )
        return Problem(mdp, expert, unlabelled)
    mdp = random_mdp(2, by_step=kind in ("steps", "sparse"), discount=0.9, horizon=6, start=start)
    if kind == "sparse":
        mdp = mdp.replace(features=sp.csr_array(mdp.feature_rows))
    return Problem(mdp, drawn(mdp, THETA, 30, 1), drawn(mdp, -THETA, 8, 2))
