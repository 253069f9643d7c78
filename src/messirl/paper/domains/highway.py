"""The highway (paper, section 4): four lanes with off-road on both sides, and busy traffic.

Rows of up to two cars scroll towards the driver, who goes left, right or stays. The state is the driver's place (6),
the row beside the car and `rows_ahead` rows to come, 11 possible rows each: 6 · 11^(1 + rows_ahead) states. Features:
collision, off-road, left (the two left lanes), right (the two right lanes).

The expert's trajectory stays on the left with no collision and no off-road. θ* penalises both heavily and is
indifferent to the side, θ1 penalises both weakly, θ2 does not penalise collisions. The similarity is RBF with σ = 5 on
discounted counts; the performance is minus the expected share of time in a collision or off the road.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp

from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.paper.domains.domain import Domain, Scene
from messirl.planning import sample, soft_policy
from messirl.similarity import RBF

LANES, PLACES = 4, 6
ROWS = [cars for k in range(3) for cars in combinations(range(LANES), k)]  # 11 ways to place at most two cars
STEP = (-1, 1, 0)


def highway(
    *,
    rows_ahead: int = 1,
    density: float = 0.3,
    discount: float = 0.95,
    length: int = 100,
    heavy: float = 10.0,
    weak: float = 2.0,
    experts: int = 1,
    pool: int = 100,
    similarity: Any = None,
) -> Domain:
    """Make the domain; `density` is the probability of a car in a lane, `heavy` and `weak` the penalties of θ*, θ1."""
    settings = {k: v for k, v in locals().items() if k != "similarity"}
    if rows_ahead < 1:
        raise ValueError(f"rows_ahead={rows_ahead}: must be at least 1, for the driver to see cars in time")
    chance = np.array([density ** len(cars) * (1 - density) ** (LANES - len(cars)) for cars in ROWS])
    chance /= chance.sum()
    n_rows, n_views = len(ROWS), len(ROWS) ** (1 + rows_ahead)
    place, view = np.divmod(np.arange(PLACES * n_views), n_views)
    beside = view // n_rows**rows_ahead
    occupied = np.array([[lane in cars for lane in range(LANES)] for cars in ROWS])

    on_road = (place > 0) & (place < PLACES - 1)
    lane = np.clip(place - 1, 0, LANES - 1)
    collision = on_road & occupied[beside, lane]
    features = np.column_stack([collision, ~on_road, on_road & (lane < 2), on_road & (lane >= 2)]).astype(float)
    begins = on_road & ~collision
    weight = np.prod([chance[view // n_rows**k % n_rows] for k in range(1 + rows_ahead)], axis=0) * begins
    mdp = MDP(
        _traffic(place, view, n_rows, n_views, chance),
        features,
        start=weight / weight.sum(),
        discount=discount,
        action_names=("left", "right", "stay"),
        feature_names=("collision", "off-road", "left", "right"),
    )
    alike = RBF(5.0) if similarity is None else similarity
    thetas = {
        "star": np.array([-heavy, -heavy, 0.0, 0.0]),
        "one": np.array([-weak, -weak, 0.0, 0.0]),
        "two": np.array([0.0, -heavy, 0.0, 0.0]),
    }
    policies = {k: soft_policy(mdp, mdp.reward(theta)) for k, theta in thetas.items()}

    def scene(seed: int) -> Scene:
        random = np.random.RandomState(seed)
        drives = [_keep_left(random, length, rows_ahead, chance, occupied) for _ in range(experts)]
        expert = Trajectories.from_lists(*zip(*drives, strict=True))
        pools = {k: sample(mdp, policy, pool, length, random) for k, policy in policies.items()}
        bad = (collision | ~on_road).astype(float)
        drawn = (expert, pools, random.random_sample(pool), -bad, policies["star"])

        def performance(visits: Floats) -> float:
            return -(1.0 - discount) * float(visits @ bad)

        return Scene(mdp, *drawn, alike, performance, thetas)

    return Domain("highway", mdp, settings, scene, partial(_draw, chance=chance))


def _traffic(place: Any, view: Any, n_rows: int, n_views: int, chance: Floats) -> sp.csr_array:
    """Return the transitions: the driver moves, the rows scroll by one, a new row comes into sight."""
    n = place.size
    to_place = np.clip(place[:, None] + np.array(STEP), 0, PLACES - 1)
    ahead = (view % (n_views // n_rows)) * n_rows  # the row beside the car goes out of sight
    to = to_place[:, :, None] * n_views + ahead[:, None, None] + np.arange(n_rows)
    rows = np.broadcast_to((np.arange(n)[:, None] * 3 + np.arange(3))[:, :, None], to.shape)
    data = np.broadcast_to(chance, to.shape)
    return sp.csr_array(sp.coo_array((data.ravel(), (rows.ravel(), to.ravel())), shape=(n * 3, n)))


def _keep_left(random: Any, length: int, rows_ahead: int, chance: Floats, occupied: Any) -> tuple[list[int], list[int]]:
    """Return states and actions of a clean drive in the two left lanes; rows that block both lanes are excluded."""
    open_rows = ~(occupied[:, 0] & occupied[:, 1])
    rows = random.choice(len(ROWS), length + rows_ahead, p=chance * open_rows / (chance * open_rows).sum())
    lane = int(random.choice(np.flatnonzero(~occupied[rows[0], :2])))
    states, actions = [], []
    weights = len(ROWS) ** np.arange(rows_ahead, -1, -1)
    for t in range(length):
        if t > 0:
            blocked = occupied[rows[t], lane]
            actions.append((1 if lane == 0 else 0) if blocked else 2)
            lane = 1 - lane if blocked else lane
        states.append((lane + 1) * len(ROWS) ** (1 + rows_ahead) + int(rows[t : t + rows_ahead + 1] @ weights))
    return states, actions


def _draw(ax: Any, chance: Floats) -> None:
    random = np.random.RandomState(3)
    rows = random.choice(len(ROWS), 9, p=chance)
    ax.axvspan(-0.5, 0.5, color="0.8")
    ax.axvspan(4.5, 5.5, color="0.8")
    for line in (0.5, 1.5, 2.5, 3.5, 4.5):
        ax.axvline(line, color="0.3", linestyle="-" if line in (0.5, 4.5) else (0, (8, 8)), linewidth=1.5)
    for height, row in enumerate(rows):
        for lane in ROWS[row]:
            if height > 0 or lane != 1:
                ax.add_patch(_car(lane + 1, height, "#D55E00"))
    ax.add_patch(_car(2, 0, "#0072B2"))
    ax.set_xlim(-0.5, 5.5)
    ax.set_ylim(-0.6, 8.6)
    ax.set_xticks(range(6), ["off", "1", "2", "3", "4", "off"])
    ax.set_yticks([])
    ax.set_aspect(0.8)


def _car(x: float, y: float, colour: str) -> Any:
    from matplotlib.patches import FancyBboxPatch

    return FancyBboxPatch(
        (x - 0.22, y - 0.3), 0.44, 0.6, boxstyle="round,pad=0.05", facecolor=colour, edgecolor="black"
    )
