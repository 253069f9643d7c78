"""Two families of random problems with a known truth: Garnet problems, and road networks.

Experts follow the soft policy of θ*, unlabelled trajectories that of random weights (P_1) or of no reward (P_2). Each
seed makes a different problem.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.paper.domains.domain import SyntheticTask
from messirl.planning import sample, soft_policy


def garnet(
    seed: int,
    *,
    states: int = 50,
    actions: int = 4,
    branching: int = 3,
    features: int = 8,
    discount: float = 0.95,
    length: int = 40,
    experts: int = 1,
    pool: int = 100,
) -> SyntheticTask:
    """Make a Garnet problem (Archibald, McKinnon, Thomas 1995): every action leads to a few random states.

    Successors are drawn without replacement, their probabilities from a flat Dirichlet distribution, features of states
    and θ* from a standard normal one; trajectories begin anywhere and never end.
    """
    random = np.random.RandomState(seed)
    moves = np.zeros((states * actions, states))
    for row in moves:
        row[random.choice(states, branching, replace=False)] = random.dirichlet(np.ones(branching))
    mdp = MDP(
        sp.csr_array(moves),
        random.standard_normal((states, features)),
        start=np.full(states, 1.0 / states),
        discount=discount,
    )
    thetas = {"star": random.standard_normal(features), "one": random.standard_normal(features)}
    return draw_task(mdp, thetas | {"two": np.zeros(features)}, thetas["star"], random, length, experts, pool)


def network(
    seed: int,
    *,
    places: int = 60,
    roads: int = 3,
    discount: float = 0.95,
    length: int = 60,
    experts: int = 1,
    pool: int = 100,
) -> SyntheticTask:
    """Make a road network: random places in a square, one-way roads to the nearest ones, and one destination.

    Roads have a length, hills, lights and a view; θ* = −(20, 4, 4, −1). Trajectories begin anywhere and end at the
    destination. A place's last road leads to the next place of a tour through all of them, so that every place can be
    left and reached.
    """
    random = np.random.RandomState(seed)
    at = random.random_sample((places, 2))
    far = np.linalg.norm(at[:, None] - at[None, :], axis=2)
    near = np.argsort(far + 9.0 * np.eye(places), axis=1)
    tour = np.roll(np.arange(places), -1)
    to = np.array([[*[p for p in near[s].tolist() if p != tour[s]][: roads - 1], tour[s]] for s in range(places)])
    steps = np.stack([far[np.arange(places)[:, None], to], *(0.25 + random.random_sample((3, places, roads)))], axis=2)
    moves = sp.csr_array((np.ones(to.size), (np.arange(to.size), to.ravel())), shape=(to.size, places))
    begin = (np.arange(places) > 0) / (places - 1)
    mdp = MDP(
        moves,
        steps,
        start=begin,
        discount=discount,
        terminal=np.arange(places) == 0,
        feature_names=("length", "hills", "lights", "view"),
    )
    star = np.array([-20.0, -4.0, -4.0, 1.0])
    thetas = {"star": star, "one": star[random.permutation(star.size)], "two": np.zeros(star.size)}
    return draw_task(mdp, thetas, star, random, length, experts, pool)


def draw_task(
    mdp: MDP,
    thetas: dict[str, Floats],
    truth: Floats,
    random: np.random.RandomState,
    length: int,
    experts: int,
    pool: int,
) -> SyntheticTask:
    """Draw trajectories from the soft policies of these θ, of which "star" is the expert's; `truth` is the true θ."""
    policies = {name: soft_policy(mdp, mdp.reward(theta)) for name, theta in thetas.items()}
    expert = sample(mdp, policies["star"], experts, length, random)
    pools = {name: sample(mdp, policy, pool, length, random) for name, policy in policies.items()}
    return SyntheticTask(mdp, expert, pools, random.random_sample(pool), mdp.reward(truth), policies["star"])
