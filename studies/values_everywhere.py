"""Should a fit have finite values only where the experts' starts lead, or wherever a trajectory can end?

python -m studies.values_everywhere FOLDER FOLDER … [--draws N]: problem folders at discount 1. For each draw, experts
are drawn (5, 20, 100; of a folder with mazes, from five of them) and each method is fitted twice: values required where
the experts' starts lead, and at all states that can reach an end (the fit is given a start that is spread over them).
Printed are the log-likelihood per step on the experts and on held-out trajectories, the share of these that have no
finite value, and the share of fits that converged.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from messirl import MDP, MESSI, MaxEntIRL, read_problem
from messirl.data.problem import Problem
from messirl.inference.baselines import held_out_scores
from messirl.planning.reachability import structure_of

METHODS = {
    "experts only": lambda: MaxEntIRL(),
    "L2, standardised, 0.01": lambda: MaxEntIRL(ridge=0.01, standardise=True),
    "MESSI": lambda: MESSI(),
}


def everywhere(mdp: MDP) -> MDP:
    """The MDP with a start spread over all states that can reach an end."""
    structure = structure_of(mdp)
    return mdp.replace(start=structure.alive / structure.alive.sum())


def splits(problem: Problem, n: int, rng: Any) -> tuple[Any, Any, Any]:
    """Rows of experts, of unlabelled and of held-out trajectories."""
    role = problem.meta["role"]
    expert, others = np.flatnonzero(role == "expert"), np.flatnonzero(role == "unlabelled")
    if "maze" in problem.meta:
        maze = problem.meta["maze"]
        known = rng.permutation(np.unique(maze))[:5]
        inside = np.isin(maze, known)
        held_out = expert[~inside[expert]]
        expert, others = expert[inside[expert]], others[inside[others]]
    else:
        held_out = np.flatnonzero(role == "test")
    draw = rng.permutation(expert)[:n]
    return np.sort(draw), rng.permutation(others)[:300], rng.permutation(held_out)[:300]


def rows(folder: Path, draws: int) -> Iterator[tuple[Any, ...]]:
    """For every number of experts, method and requirement: its means over draws."""
    problem = read_problem(folder)
    every = problem.trajectories
    for n in (5, 20, 100):
        found: dict[tuple[str, str], list[tuple[float, float, float, bool]]] = {}
        for seed in range(draws):
            expert, others, held_out = (every[some] for some in splits(problem, n, np.random.default_rng([seed, n])))
            for where, mdp in (("met", problem.mdp), ("everywhere", everywhere(problem.mdp))):
                for name, make in METHODS.items():
                    model = make().fit(mdp, expert, others)
                    _, logs = held_out_scores(model, held_out)
                    assert logs is not None
                    kept = np.isfinite(logs)
                    score = logs[kept].sum() / max((held_out.lengths - 1)[kept].sum(), 1)
                    result = (model.score(expert), float(score), float(1.0 - kept.mean()), model.converged_)
                    found.setdefault((name, where), []).append(result)
        for (name, where), results in found.items():
            yield n, name, where, *np.mean(results, axis=0)


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--draws", type=int, default=12)
    arguments = parser.parse_args()
    print("folder,experts,method,values required,on experts,held out where finite,without a value,converged")
    for folder in arguments.folders:
        for n, name, where, own, score, lost, converged in rows(folder, arguments.draws):
            print(f'{folder.name},{n},"{name}",{where},{own:.4f},{score:.4f},{lost:.3f},{converged:.2f}', flush=True)


if __name__ == "__main__":
    main()
