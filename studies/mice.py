"""What unlabelled trips are worth on the labyrinth: held-out log-probability per step of every method.

python -m studies.mice FOLDER: a problem folder with roles expert, unlabelled and test. l experts and 500 unlabelled
trips are drawn; λ0 of every method is chosen on 10 other expert trips; the score is on all test trips, looked at once.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from messirl.io import read_problem
from messirl.selection import Bench, Candidate, likeness
from messirl.similarity import RBF
from studies import similarities as other
from studies.common import column, draws, options, shown, write

STANDARD = RBF("median", standardise=True)
PATH = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)
SIMILARITIES = {
    "MESSI": STANDARD,
    "MESSI, narrow": RBF(0.25, standardise=True),
    "MESSI, visited states": other.Visits(),
    "MESSI, sequences of 3": other.Sequences(3),
    "MESSI, whitened": other.Whitened(),
    "MESSI, log counts": other.LogCounts(),
}
PENALTIES = {"L2": "Ridge", "L2, standardised": "RidgeStd", "complete graph": "Complete"}
METHODS = ("MaxEnt", *SIMILARITIES, "MESSI, to experts only", "MESSI, screened", *PENALTIES, "pooling")


@cache
def problem(folder: str) -> Any:
    return read_problem(folder)


def one(folder: str, n_expert: int, seed: int) -> list[dict[str, Any]]:
    found = problem(folder)
    mdp, trips, role = found.mdp, found.trajectories, found.meta["role"].astype(str)
    random = np.random.default_rng(seed)
    order = random.permutation(np.flatnonzero(role == "expert"))
    expert, validation = trips[order[:n_expert]], trips[order[n_expert : n_expert + 10]]
    unlabelled = trips[random.permutation(np.flatnonzero(role == "unlabelled"))[:500]]
    test = trips[np.flatnonzero(role == "test")]
    alike = likeness(mdp, expert, unlabelled, random_state=0).alike
    bench = Bench(mdp, expert, unlabelled, yardstick=STANDARD, tol=1e-5, alike=alike)

    def path(name: str) -> list[Candidate]:
        if name in ("MaxEnt", "pooling"):
            return [Candidate({"pooling": "Pooling"}.get(name, name))]
        if name in PENALTIES:
            return [Candidate(PENALTIES[name], x) for x in PATH]
        if name == "MESSI, screened":
            return [Candidate("Screened", x, STANDARD) for x in PATH]
        similarity = other.ToExperts(n_expert) if name == "MESSI, to experts only" else SIMILARITIES[name]
        return [Candidate("MESSI", x, similarity) for x in PATH]

    rows = []
    for name in METHODS:
        tried = [(bench.score(theta, validation), c.lambda0, theta) for c, theta in bench.path(path(name))]
        _, lambda0, theta = max(tried, key=lambda item: item[0])
        score = bench.score(theta, test) / int((test.lengths - 1).sum())
        rows.append({"experts": n_expert, "seed": seed, "method": name, "lambda0": lambda0, "score": score})
    return rows


def main() -> None:
    parser = options(__doc__ or "", runs=16)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.runs)
    rows = draws(one, [(str(arguments.folder), l, s) for l in (5, 10) for s in seeds], arguments.jobs)
    write(rows, arguments.out / "mice.csv")
    for l in (5, 10):
        ours = column(rows, "score", experts=l, method="MESSI")
        for name in METHODS:
            score = column(rows, "score", experts=l, method=name)
            print(f"l = {l:2d}  {name:26s} {score.mean():8.4f}   MESSI is ahead by {shown(ours - score)}")


if __name__ == "__main__":
    main()
