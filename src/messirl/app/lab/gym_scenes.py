"""Tabular environments of gymnasium as scenes: an expert that follows the true reward, and others that do not.

P_u*  soft policy of the true reward        P_1  zero reward        P_2  soft policy of the opposite reward
"""

from __future__ import annotations

from typing import Any

import numpy as np

from messirl.app.lab.catalog import LabScene, drawn_scene
from messirl.app.lab.state_layout import Layout
from messirl.data.mdp import MDP
from messirl.io.interop.gym import from_gym, gym_reward
from messirl.paper import domains
from messirl.planning import sample, soft_policy
from messirl.similarity import RBF

SCALE = {"FrozenLake-v1": 30.0, "FrozenLake8x8-v1": 60.0, "CliffWalking-v1": 1.0}  # inverse temperature of the expert
WIDE = {"FrozenLake-v1": 4, "FrozenLake8x8-v1": 8, "CliffWalking-v1": 12}  # columns of the grid
DISCOUNT, LENGTH, POOL, EXPERTS = 0.95, 60, 100, 5


def table_scene(name: str, seed: int) -> domains.Scene:
    """Draw one run of an environment: expert trajectories, and pools of unlabelled ones."""
    mdp = from_gym(name, discount=DISCOUNT, features="entered")
    reward = SCALE[name] * gym_reward(name)
    random = np.random.RandomState(seed)
    policies = {"star": soft_policy(mdp, reward), "one": soft_policy(mdp, 0.0 * reward)}
    policies["two"] = soft_policy(mdp, -0.2 * reward)
    expert = sample(mdp, policies["star"], EXPERTS, LENGTH, random)
    pools = {k: sample(mdp, policy, POOL, LENGTH, random) for k, policy in policies.items()}
    coins = random.random_sample(POOL)
    return domains.Scene(mdp, expert, pools, coins, reward, policies["star"], RBF(5.0), lambda visits: 0.0, {})


def scene_of_table(name: str, title: str, seed: int) -> LabScene:
    """Create the scene of an environment."""
    scene = table_scene(name, seed)
    made = ["from messirl.paper.domains import mixture", "from messirl.app.lab.gym_scenes import table_scene", ""]
    made.append(f'scene = table_scene("{name}", {{seed}})')
    own: dict[str, Any] = {
        "similarity": "rbf",
        "sigma": 5.0,
        "lambda0": 1.0,
        "objective": "choices",
        "experts": EXPERTS,
    }
    story = f"{name} of gymnasium: the expert follows the true reward; one feature per entered state."
    return drawn_scene(name, title, story, scene, _rows(scene.mdp, WIDE[name]), made, own, by_feature=True)


def _rows(mdp: MDP, wide: int) -> Layout:
    """Return the layout row by row from the top, as gymnasium numbers its cells; the added end state is not drawn."""
    cells = np.arange(mdp.n_states - 1)
    y, x = np.divmod(cells, wide)
    tile = np.append(cells, -1)
    return Layout("grid", tile, np.column_stack([x, y.max() - y]).astype(np.float64), [f"cell {s}" for s in cells])
