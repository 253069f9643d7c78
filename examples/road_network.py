"""Route choice: trips through a town, each to its own goal, and what commuters mind.

Run `python examples/road_network.py [folder]`. The trips are those of `messirl example roads`. Look at the table: every
estimate lies within two or three standard errors of the truth that the trips were drawn from, and so does the ratio:
how many tolls a minute is worth. Look at the picture: flows counted, and flows the model expects.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

from messirl import MaxEntIRL, estimation_table, expected_flows, plot, weight_ratio
from messirl.paper.synthetic import roads

out = Path(sys.argv[1] if len(sys.argv) > 1 else "out/examples")
town = roads()
mdp, trips = town.problem.mdp, town.problem.select("who = commuter").trajectories

model = MaxEntIRL(theta_max=None).fit(mdp, trips)
table = estimation_table(model, trips)
worth = weight_ratio(table, "g_minutes", "g_toll")
print(f"the truth: {town.theta['commuter']}\n\n{table}\n")
print(f"a minute is worth {worth.value:.3f} tolls, 95 % interval {worth.low:.3f} to {worth.high:.3f}\n")

expected = expected_flows(model, trips).steps
at, (s, a, to) = town.problem.xy, np.nonzero(mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, -1))
counted = np.zeros((mdp.n_states, mdp.n_states))
left = np.flatnonzero(trips.leaves)
np.add.at(counted, (trips.states[left], trips.states[left + 1]), 1.0)
ends = np.stack([at[s], at[to]], axis=1)
shift = (ends[:, 1] - ends[:, 0])[:, ::-1] * [0.07, -0.07]  # one drives on the right
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
titles = ("trips counted", "trips expected by the model")
for ax, flows, title in zip(axes, (counted[s, to], expected[s, a]), titles, strict=True):
    lines = LineCollection(list(ends + shift[:, None]), array=flows, cmap=plot.SEQUENTIAL, clim=(0, counted.max()))
    lines.set_linewidth(6 * flows / counted.max())
    ax.add_collection(lines)
    ax.set(title=title, aspect="equal", xlim=(-0.4, 4.4), ylim=(-0.4, 4.4))
    ax.axis("off")
figure.colorbar(lines, ax=axes, label="trips on a road")
out.mkdir(parents=True, exist_ok=True)
figure.savefig(out / "road_network.png", dpi=110)
print(f"picture in {out / 'road_network.png'}")
