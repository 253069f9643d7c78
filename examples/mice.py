"""Thirsty mice in a labyrinth: ten trips of trained mice and 500 of any mouse predict other mice.

Run `python examples/mice.py FOLDER [folder of the picture]`. FOLDER is the problem folder labyrinth_segments: trips of
19 mice (Rosenberg, Zhang, Perona and Meister, eLife 2021, doi 10.7554/eLife.66175) from the entrance to the water or
back home, with a column `role`: expert, unlabelled or test. Look at the scores: MESSI is ahead of all baselines; the
complete graph, for which any two trips are alike, comes close. Look at the picture: the way to the water stands out.
"""

import sys
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from messirl import MESSI, IdentifiabilityWarning, plot
from messirl.inference.baselines import compare
from messirl.io import read_problem, select
from messirl.similarity import RBF

if len(sys.argv) < 2 or not Path(sys.argv[1], "problem.json").exists():
    sys.exit(
        "mice.py: there are no mice here. The data belongs to others and is not part of messirl: get it by the doi in "
        "this file, write it as a problem folder (see messirl.io.folder.reader), and run python examples/mice.py FOLDER"
    )
warnings.simplefilter("ignore", IdentifiabilityWarning)  # depth and quadrant of a junction determine each other
out = Path(sys.argv[2] if len(sys.argv) > 2 else "out/examples")
mice = read_problem(sys.argv[1])
random = np.random.default_rng(0)


def drawn(role: str, n: int | None = None):
    """n trips of a role at random, or all."""
    rows = random.permutation(np.flatnonzero(select(mice.meta, f"role = {role}")))
    return mice.trajectories[rows[:n]]


expert, others, test = drawn("expert", 10), drawn("unlabelled", 500), drawn("test")
model = MESSI(RBF("median", standardise=True), lambda0=0.01, max_iter=500).fit(mice.mdp, expert, others)
print(f"log-probability a step of {len(test)} trips of other mice\n{'MESSI':12s} {model.score(test):7.3f}")
for row in compare(model, mice.mdp, expert, others, test):
    print(f"{row.name:12s} {row.held_out:7.3f}")

_, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for ax, draw, title in zip(axes, (plot.reward, plot.visitation), ("what they want", "where they go"), strict=True):
    plot.moves(mice.mdp, mice.xy, ax)
    draw(model, mice.xy, ax, tiles=False)
    ax.set_title(title)
    ax.spines[:].set_visible(False)
out.mkdir(parents=True, exist_ok=True)
plt.savefig(out / "mice.png", dpi=110)
print(f"picture in {out / 'mice.png'}")
