"""How long does a selection take? `MESSICV()` on draws of every data set, a few experts and many others each.

python -m studies.selection_times DATA OUT [--only NAME] [--draws N]: DATA holds the folders of data. OUT gets a row
per draw: seconds, what was chosen and its weights, for a comparison of two versions (run the other one with its
`src` on PYTHONPATH). The draws of `roads` need no folder: grids of 625 crossings with random times.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from messirl import MDP, MESSICV, Trajectories, read_problem, sample, soft_policy

EXPERTS = (3, 5, 6, 7)
UNLABELLED = 300
Draw = tuple[MDP, Trajectories, Trajectories]


def divided(mdp: MDP, expert: Trajectories, others: Trajectories, rng: np.random.Generator) -> Draw:
    """A few of the experts, some of the others, the rows of each in the order of the folder."""
    few = int(rng.choice(EXPERTS))
    first = expert[np.sort(rng.permutation(len(expert))[:few])]
    return mdp, first, others[np.sort(rng.permutation(len(others))[:UNLABELLED])]


def by_column(folder: Path, column: str, value: str, rng: np.random.Generator) -> Draw:
    found = read_problem(folder)
    expert = found.meta[column].astype(str) == value
    trips = found.trajectories
    return divided(found.mdp, trips[np.flatnonzero(expert)], trips[np.flatnonzero(~expert)], rng)


def mazes(folder: Path, rng: np.random.Generator) -> Draw:
    """The trips of the experts in five mazes, and of all others there."""
    found = read_problem(folder)
    known = rng.permutation(np.unique(found.meta["maze"]))[:5]
    inside, expert = np.isin(found.meta["maze"], known), found.meta["role"].astype(str) == "expert"
    trips = found.trajectories
    return divided(found.mdp, trips[np.flatnonzero(inside & expert)], trips[np.flatnonzero(inside & ~expert)], rng)


def drivers(folder: Path, rng: np.random.Generator) -> Draw:
    """Trips to the 20 destinations that most trips have: any may be an expert."""
    found = read_problem(folder)
    goals, often = np.unique(found.trajectories.goals, return_counts=True)
    frequented = goals[np.argsort(-often, kind="stable")[:20]]
    trips = found.trajectories[np.flatnonzero(np.isin(found.trajectories.goals, frequented))]
    order = rng.permutation(len(trips))
    return divided(found.mdp, trips[order[:50]], trips[order[50:]], rng)


def roads(folder: Path, rng: np.random.Generator) -> Draw:
    """A grid of roads whose time differs, with a goal a trip; the others mind time less, turns more."""
    del folder
    side, names = 25, ["time", "turn", "const"]
    n = side * side
    moves, features = np.zeros((n, 4, n)), np.zeros((n, 4, 3))
    for s in range(n):
        r, c = divmod(s, side)
        for a, (dr, dc) in enumerate(((0, 1), (1, 0), (0, -1), (-1, 0))):
            if 0 <= r + dr < side and 0 <= c + dc < side:
                moves[s, a, (r + dr) * side + c + dc] = 1.0
                features[s, a] = [rng.uniform(0.2, 1.8), float(rng.random() < 0.4), 1.0]
    mdp = MDP(moves, features, discount=1.0, feature_names=names)

    def trips(theta: Any, many: int) -> Trajectories:
        parts = []
        for goal in (np.arange(1, 6) * n) // 6:
            policy = soft_policy(mdp, mdp.reward(np.asarray(theta)), goal=int(goal))
            start = np.full(n, 1.0 / n)
            parts.append(sample(mdp, policy, many, random_state=rng, goal=int(goal), start=start))
        out = parts[0]
        for part in parts[1:]:
            out = out + part
        return out

    return divided(mdp, trips([-1.5, -0.8, -1.0], 4), trips([-0.7, -1.6, -1.2], 60), rng)


SOURCES: dict[str, tuple[str, Callable[[Path, np.random.Generator], Draw], int]] = {  # folder, how to draw, how often
    "mazes": ("cothi_mazes", mazes, 36),
    "mice": ("labyrinth_segments", lambda folder, rng: by_column(folder, "role", "expert", rng), 24),
    "bus": ("bus_engines", lambda folder, rng: by_column(folder, "group", "4", rng), 12),
    "roads": ("", roads, 20),
    "borlange": ("borlange", drivers, 8),
}


def main() -> None:
    """Time each draw."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", choices=SOURCES)
    parser.add_argument("--draws", type=int, help="of each source, instead of its own number")
    arguments = parser.parse_args()
    with arguments.out.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["source", "draw", "experts", "seconds", "chosen", "theta"])
        for name, (folder, draw, often) in SOURCES.items():
            for number in range(arguments.draws or often) if arguments.select_kinds in (None, name) else ():
                mdp, expert, unlabelled = draw(arguments.data / folder, np.random.default_rng([number, 1987]))
                begun = time.perf_counter()
                model = MESSICV(random_state=0).fit(mdp, expert, unlabelled)
                seconds = round(time.perf_counter() - begun, 2)
                row = [name, number, len(expert), seconds, str(model.candidate_)]
                table.writerow([*row, *np.round(model.theta_, 6)])
                file.flush()


if __name__ == "__main__":
    main()
