"""A small road network with trips of known θ: deterministic moves, γ = 1, a goal a trip."""

from __future__ import annotations

import numpy as np
from seeds import generator

from messirl import MDP, Trajectories, sample, soft_policy

NAMES = ["time", "turn", "const"]
TRUTH = np.array([-1.5, -0.8, -1.0])


def network(side: int = 5, seed: int = 0) -> MDP:
    """side × side crossings, four moves each; time differs by road, going against the last row or column turns."""
    rng = generator(seed)
    n = side * side
    moves, features = np.zeros((n, 4, n)), np.zeros((n, 4, 3))
    for s in range(n):
        r, c = divmod(s, side)
        for a, (dr, dc) in enumerate(((0, 1), (1, 0), (0, -1), (-1, 0))):
            if 0 <= r + dr < side and 0 <= c + dc < side:
                moves[s, a, (r + dr) * side + c + dc] = 1.0
                features[s, a] = [rng.uniform(0.2, 1.8), float(rng.random() < 0.4), 1.0]
    return MDP(moves, features, discount=1.0, feature_names=NAMES)


def trips(mdp: MDP, n: int, seed: int, theta: np.ndarray = TRUTH) -> Trajectories:
    """n trips, a fifth of them to each of five goals, drawn from the model at θ."""
    rng = generator(seed)
    goals = (np.arange(1, 6) * mdp.n_states) // 6
    start = np.full(mdp.n_states, 1.0 / mdp.n_states)
    out = None
    for goal in goals.tolist():
        policy = soft_policy(mdp, mdp.reward(theta), goal=goal)
        some = sample(mdp, policy, n // 5, random_state=rng, goal=goal, start=start)
        out = some if out is None else out + some
    assert out is not None
    return out
