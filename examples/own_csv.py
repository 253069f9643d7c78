"""Your own data: a folder of CSV files. Here, the paths of visitors of a park, a few of them led by a guide.

Run `python examples/own_csv.py [folder]`. Look into out/examples/park: the five files are all that messirl needs. Look
at the weights: guides seek shade and views and avoid crowds, visitors seek them. The same from the command line:
`messirl fit out/examples/park --expert "who = guide" --unlabelled "who = visitor"`
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from messirl import MESSI, MaxEntIRL, plot
from messirl.io import read_problem, select
from messirl.similarity import RBF

out = Path(sys.argv[1] if len(sys.argv) > 1 else "out/examples")
places = {  # x, y, shade, view, crowd
    "gate": (0, 0, 0, 0, 1), "avenue": (1, 0, 1, 0, 1), "café": (2, 0, 0, 0, 1), "lake": (3, 0, 0, 1, 1),
    "rose garden": (0, 1, 0, 1, 0), "path": (1, 1, 0, 0, 0), "meadow": (2, 1, 0, 0, 0), "pier": (3, 1, 0, 1, 0),
    "oaks": (0, 2, 1, 0, 0), "hill": (1, 2, 1, 1, 0), "pines": (2, 2, 1, 0, 0), "playground": (3, 2, 0, 0, 1),
}  # fmt: skip
ways = {a: [b for b in places if np.hypot(*np.subtract(places[a][:2], places[b][:2])) == 1] for a in places}
rows, who, random = [], [], np.random.default_rng(0)
for walk in range(40):
    wants, here = np.array([1.5, 1.5, -2.0] if walk < 5 else [0.0, 0.5, 1.0]), "gate"
    who.append(f"walk {walk},{'guide' if walk < 5 else 'visitor'}")
    for step in range(25):
        rows.append(f"walk {walk},{step},{here}")
        chance = np.exp([wants @ places[b][2:] for b in ways[here]])
        here = str(random.choice(ways[here], p=chance / chance.sum()))
tables = {
    "states": ["state,x,y,f_shade,f_view,f_crowd", *(f"{name},{','.join(map(str, v))}" for name, v in places.items())],
    "edges": ["from,to,action", *(f"{a},{b},{i}" for a in places for i, b in enumerate(ways[a]))],
    "trajectories": ["trajectory_id,step,state", *rows],
    "trajectory_meta": ["trajectory_id,who", *who],
}
park = out / "park"
park.mkdir(parents=True, exist_ok=True)
for name, lines in tables.items():
    (park / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
(park / "problem.json").write_text('{"discount": 1, "horizon": 25}')

problem = read_problem(park)
guides, visitors = (problem.trajectories[select(problem.meta, f"who = {kind}")] for kind in ("guide", "visitor"))
model = MESSI(RBF("median", standardise=True), lambda0=0.01).fit(problem.mdp, guides, visitors)
other = MaxEntIRL().fit(problem.mdp, visitors)
for name, guide, visitor in zip(problem.mdp.feature_names, model.theta_, other.theta_, strict=True):
    print(f"{name:8s} guides {guide:5.2f}   visitors {visitor:5.2f}")
ax = plot.policy(model, problem.xy)
for name, (x, y, *_) in places.items():
    ax.text(x, y - 0.44, name, ha="center", fontsize=8, zorder=6, bbox={"facecolor": "white", "pad": 1.5, "lw": 0})
ax.set_title("what a place is worth to a guide, and the next step")
plt.savefig(out / "own_csv.png", dpi=110)
print(f"picture in {out / 'own_csv.png'}, the folder is {park}")
