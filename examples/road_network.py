"""Route choice: trips on a small road network, each to its own goal, and what drivers dislike.

Run `python examples/road_network.py [folder]`. Look at the table: every estimate lies within two or three standard
errors of the truth that the trips were drawn from. Look at the picture: flows counted, and flows the model expects.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

from messirl import MDP, MaxEntIRL, Trajectories, estimation_table, expected_flows, plot, sample, soft_policy

out = Path(sys.argv[1] if len(sys.argv) > 1 else "out/examples")
random = np.random.default_rng(0)
side, moves = 7, ((0, 1), (1, 0), (0, -1), (-1, 0))  # crossings; roads to the right, down, left, up
roads, features = np.zeros((side**2, 4, side**2)), np.zeros((side**2, 4, 3))
for s in range(side**2):
    row, column = divmod(s, side)
    for a, (down, right) in enumerate(moves):
        r, c = row + down, column + right
        if 0 <= r < side and 0 <= c < side:
            quick = (down == 0 and row == 3) or (right == 0 and column == 3)
            roads[s, a, r * side + c] = 1.0
            features[s, a] = [random.uniform(0.8, 1.6) * (0.4 if quick else 1.0), random.random() < 0.2, 1.0]
mdp = MDP(roads, features, discount=1.0, feature_names=["minutes", "light", "crossing"])

truth = np.array([-2.0, -0.7, -0.5])
trips = Trajectories.from_lists([], goals=[])
for goal in (0, 6, 24, 42, 48):
    policy = soft_policy(mdp, mdp.reward(truth), goal=goal)
    trips += sample(mdp, policy, 80, random_state=random, goal=goal, start=np.full(side**2, side**-2))

model = MaxEntIRL(theta_max=None).fit(mdp, trips)
print(f"the truth: {dict(zip(mdp.feature_names, truth.tolist(), strict=True))}\n\n{estimation_table(model, trips)}\n")

expected, counted = expected_flows(model, trips).steps, np.zeros((mdp.n_states, mdp.n_actions))
np.add.at(counted, (trips.states[trips.leaves], trips.actions), 1.0)
at, (s, a) = plot.grid(side, side), np.nonzero(mdp.allowed)
ends = np.stack([at[s], at[mdp.transitions[s * 4 + a].indices]], axis=1)
shift = (ends[:, 1] - ends[:, 0])[:, ::-1] * [0.07, -0.07]  # one drives on the right
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, flows, title in zip(axes, (counted, expected), ("trips counted", "trips expected by the model"), strict=True):
    lines = LineCollection(
        list(ends + shift[:, None]), array=flows[s, a], cmap=plot.SEQUENTIAL, clim=(0, counted.max())
    )
    lines.set_linewidth(6 * flows[s, a] / counted.max())
    ax.add_collection(lines)
    ax.set(title=title, aspect="equal", xlim=(-0.4, side - 0.6), ylim=(-0.4, side - 0.6))
    ax.axis("off")
figure.colorbar(lines, ax=axes, label="trips on a road")
out.mkdir(parents=True, exist_ok=True)
figure.savefig(out / "road_network.png", dpi=110)
print(f"picture in {out / 'road_network.png'}")
