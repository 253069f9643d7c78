"""When is a bus engine replaced? What the buses of other makes are worth: held-out log-probability per step.

python -m studies.bus FOLDER: a problem folder with a group for every bus. The buses of group 4 are the experts, those
of groups 1 to 3 the unlabelled. l experts are drawn; the knobs of every method are chosen on 10 other buses of group 4;
the score is on the rest of group 4, looked at once. Fitted to choices: of counts there is no optimum here.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from messirl import MESSI, MaxEntIRL, Trajectories
from messirl.io import read_problem
from messirl.similarity import RBF, CompleteGraph
from studies.common import column, draws, options, shown, write

VALIDATION = 10
SIZES = (3, 10)
RIDGES = tuple(10.0 ** np.arange(-3.0, 2.0))  # of ½ρ‖θ‖²
PATH = tuple(10.0 ** np.arange(-6.0, 1.0))  # λ0
STRENGTHS = (2.0, 10.0, 50.0, 300.0)  # the larger, the more alike all actions: without end, no base policy
MEDIAN = RBF("median", standardise=True)
ALONE = "experts alone"


def candidates() -> dict[str, list[Any]]:
    """For every method, its estimators, one per value of its knobs."""

    def ridges(**arguments: Any) -> list[Any]:
        return [MaxEntIRL(objective="choices", ridge=r, **arguments) for r in RIDGES]

    def penalties(similarity: Any) -> list[Any]:
        return [MESSI(similarity, objective="choices", lambda0=x) for x in PATH]

    return {
        ALONE: ridges(),
        "experts alone, no ridge": [MaxEntIRL(objective="choices", ridge=0.0)],
        "reference": [m for a in STRENGTHS for m in ridges(reference="unlabelled", reference_strength=a)],
        "pooling at 0.03": ridges(unlabelled_weight=0.03),
        "pooling at 1": ridges(unlabelled_weight=1.0),
        "MESSI": penalties(MEDIAN),
        "complete graph": penalties(CompleteGraph()),
    }


@cache
def problem(folder: str) -> tuple[Any, Trajectories, Trajectories]:
    """The MDP, the buses of group 4, and all others."""
    found = read_problem(folder)
    group = found.meta["group"].astype(str)
    return found.mdp, *(found.trajectories[np.flatnonzero(at)] for at in (group == "4", group != "4"))


def one(folder: str, n_expert: int, seed: int) -> list[dict[str, Any]]:
    mdp, ours, others = problem(folder)
    order = np.random.default_rng(seed).permutation(len(ours))
    expert, chosen_on, test = (ours[i] for i in np.split(order, [n_expert, n_expert + VALIDATION]))
    rows = []
    for name, models in candidates().items():
        best = max((model.fit(mdp, expert, others) for model in models), key=lambda model: model.score(chosen_on))
        knobs = {"lambda0": getattr(best, "lambda0", ""), "ridge": getattr(best, "ridge", "")}
        knobs["strength"] = best.reference_strength if best.reference is not None else ""
        rows.append({"experts": n_expert, "seed": seed, "method": name, **knobs, "score": best.score(test)})
    everything = MaxEntIRL(objective="choices", ridge=0.0).fit(mdp, others)
    blank = dict.fromkeys(("lambda0", "ridge", "strength"), "")
    rows.append({"experts": n_expert, "seed": seed, "method": "others alone", **blank, "score": everything.score(test)})
    return rows


def main() -> None:
    parser = options(__doc__ or "", runs=16)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.runs)
    rows = draws(one, [(str(arguments.folder), l, s) for l, s in product(SIZES, seeds)], arguments.jobs)
    write(rows, arguments.out / "bus.csv")
    for l in SIZES:
        alone = column(rows, "score", experts=l, method=ALONE)
        for name in dict.fromkeys(row["method"] for row in rows):
            score = column(rows, "score", experts=l, method=name)
            print(f"l = {l:2d}  {name:26s} {score.mean():8.4f}   ahead of {ALONE} by {shown(score - alone)}")


if __name__ == "__main__":
    main()
