"""Tabular environments of gymnasium as problems with known truth: FrozenLake, Taxi and CliffWalking.

Features belong to steps, and the truth is the reward of the environment. Experts follow the soft policy of a multiple
of it, which must be large enough that arriving is worth more than wandering: an endless trajectory gains the entropy
of every step, log A / (1 − γ). P_1 has the true weights in permuted order, P_2 has zero reward.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from messirl._types import Flags, Floats
from messirl.io.interop.gym import Outcomes, from_gym, gym_reward, read_outcomes
from messirl.paper.domains import SyntheticTask
from messirl.paper.domains.random_mdps import draw_task

DISCOUNT = 0.95


@dataclass(frozen=True)
class Toy:
    """One environment: ids, features of its outcomes, scale of the experts' reward, maximum length.

    ids : the newest first; versions of gymnasium have different ones
    features : function from the entries of P to their features (n, d), with these names
    """

    ids: tuple[str, ...]
    features: Callable[[Outcomes], Floats]
    names: tuple[str, ...]
    scale: float
    length: int


def _lake(table: Outcomes) -> Floats:
    return np.eye(table.n_states)[table.entered]


def _taxi(table: Outcomes) -> Floats:
    wrong, arrived = table.reward < -5.0, table.reward > 5.0
    plain = ~wrong & ~arrived
    moves = np.eye(table.n_actions)[table.action] * plain[:, None]
    return np.column_stack([wrong, arrived, moves]).astype(float)


def _cliff(table: Outcomes) -> Floats:
    fallen = table.reward < -50.0
    return np.column_stack([fallen, table.done, np.eye(4)[table.entered // 12] * ~fallen[:, None]]).astype(float)


SQUARES = tuple(f"square {i}" for i in range(16))
STEPS = ("wrong", "arrived", "south", "north", "east", "west", "picked up", "put down")
ROWS = ("fallen", "arrived", *(f"row {i}" for i in range(4)))
TOYS = {
    "FrozenLake": Toy(("FrozenLake-v1",), _lake, SQUARES, scale=100.0, length=100),
    "Taxi": Toy(("Taxi-v4", "Taxi-v3"), _taxi, STEPS, scale=5.0, length=60),
    "CliffWalking": Toy(("CliffWalking-v1", "CliffWalking-v0"), _cliff, ROWS, scale=3.0, length=60),
}


def toy_text(name: str, seed: int, *, experts: int = 1, pool: int = 100) -> SyntheticTask:
    """Draw one run of an environment; needs gymnasium."""
    toy = TOYS[name]
    env = environment(toy.ids)
    table = read_outcomes(env)
    n, m = table.n_states, table.n_actions
    features = np.zeros((n * m, len(toy.names)))
    np.add.at(features, table.row, table.probability[:, None] * toy.features(table))
    mdp = from_gym(env, discount=DISCOUNT, features=features.reshape(n, m, -1), feature_names=toy.names)
    rows = np.flatnonzero(np.repeat(_entered(table), m))  # states that only end trajectories have no choices
    reward = gym_reward(env).ravel()[rows]  # linear in these features
    truth = np.linalg.lstsq(features[rows], reward, rcond=None)[0].astype(np.float64)
    random = np.random.RandomState(seed)
    star = toy.scale * truth
    thetas = {"star": star, "one": star[random.permutation(star.size)], "two": np.zeros(star.size)}
    return draw_task(mdp, thetas, truth, random, toy.length, experts, pool)


def _entered(table: Outcomes) -> Flags:
    """Return the states (S,) in which a trajectory can start, or which it can enter without ending there."""
    assert table.start is not None, "all three have one"
    out = np.asarray(table.start) > 0.0
    out[table.entered[~table.done]] = True
    return out


def environment(ids: tuple[str, ...]) -> Any:
    """Create the environment with the first of its ids that this version of gymnasium has."""
    import gymnasium

    known = [name for name in ids if name in gymnasium.registry]
    return gymnasium.make(known[0] if known else ids[-1])
