"""A folder of CSV files, read and fitted: visits of a museum, a few of them by guides.

Run `python examples/museum.py [folder]`. Look into out/examples/museum, which is what `messirl example museum` writes:
five files that are all messirl needs, and the truth. Look at the weights: those of tourists are nearer to what guides
want, because there are more of them; school classes want other things. The README there has the same from the command
line.
"""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from messirl import MESSI, MaxEntIRL, plot
from messirl.io import read_problem
from messirl.paper.synthetic import write_example

out = Path(sys.argv[1] if len(sys.argv) > 1 else "out/examples")
folder = out / "museum"
write_example("museum", folder, overwrite=True)
truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))["theta"]["guide"]

problem = read_problem(folder)
guides, tourists, classes = (
    problem.select(which).trajectories for which in ("who = guide and day <= 2", "who = tourist", "who = class")
)
model = MESSI(lambda0=0.05).fit(problem.mdp, guides, tourists)
others = {name: MaxEntIRL().fit(problem.mdp, some) for name, some in (("tourists", tourists), ("classes", classes))}
for j, (name, wanted) in enumerate(truth.items()):
    rest = "   ".join(f"{who} {other.theta_[j]:5.2f}" for who, other in others.items())
    print(f"{name:11s} truth {wanted:5.2f}   guides {model.theta_[j]:5.2f}   {rest}")

ax = plot.policy(model, problem.xy)
for room, (x, y) in zip(problem.mdp.state_names, problem.xy, strict=True):
    ax.text(x, y - 0.44, room, ha="center", fontsize=7, zorder=6, bbox={"facecolor": "white", "pad": 1.5, "lw": 0})
ax.set_title("what a room is worth to a guide, and the next step")
plt.savefig(out / "museum.png", dpi=110)
print(f"picture in {out / 'museum.png'}, the folder is {folder}")
