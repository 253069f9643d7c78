"""Do searches at discount 1 find their optimum on splits nobody tuned them on, and does `messirl fit` always finish?

python -m studies.maze_splits FOLDER OUT [--splits 50] [--commands]: FOLDER holds `cothi_mazes`. A split takes one
subject's trips (or, in every other split, those of all experts) in five mazes at random as the experts, those of others
in the same mazes as unlabelled, and the experts' in all other mazes as held out. From each, 5, 20 and all expert trips
are fitted by experts only and by MESSI; OUT gets a row per fit: objective, convergence, why it ended, evaluations and
seconds. With --commands, `messirl fit` runs on each split as well, and its exit code and time are printed.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from messirl import MESSI, MaxEntIRL, read_problem

UNLABELLED = 300


def split(meta: Any, seed: int) -> tuple[str, Any, Any]:
    """A filter for experts, the numbers of the mazes, and the generator that drew them."""
    rng = np.random.default_rng([seed, 52])
    known = np.sort(rng.permutation(np.unique(meta["maze"]))[:5])
    who = "role = expert"
    if seed % 2:
        who = f"subject = {rng.choice(np.unique(meta['subject']))}"
    return who, known, rng


def rows_of(meta: Any, who: str, known: Any) -> tuple[Any, Any]:
    """Rows of the experts and of all others in the known mazes."""
    column, value = who.split(" = ")
    expert, inside = meta[column].astype(str) == value, np.isin(meta["maze"], known)
    return np.flatnonzero(expert & inside), np.flatnonzero(~expert & inside)


def fits(folder: Path, out: Path, splits: int) -> None:
    """Write a row per fit."""
    problem = read_problem(folder)
    with out.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["split", "experts", "method", "objective", "converged", "evaluations", "seconds", "reason"])
        for seed in range(splits):
            who, known, rng = split(problem.meta, seed)
            experts, others = rows_of(problem.meta, who, known)
            unlabelled = problem.trajectories[np.sort(rng.permutation(others)[:UNLABELLED])]
            for n in (5, 20, len(experts)):
                expert = problem.trajectories[np.sort(rng.permutation(experts)[:n])]
                for method in (MaxEntIRL(ridge=1e-3), MESSI()):
                    begun = time.perf_counter()
                    model = method.fit(problem.mdp, expert, unlabelled)
                    row = [seed, n, type(model).__name__, model.objective_, model.converged_]
                    row += [model.history_.evaluations[-1], round(time.perf_counter() - begun, 3), model.termination_]
                    table.writerow(row)


def commands(folder: Path, splits: int) -> None:
    """Run `messirl fit` on each split, and print its exit code and seconds."""
    meta = read_problem(folder).meta
    for seed in range(splits):
        who, known, _ = split(meta, seed)
        mazes = " or ".join(f"maze = {maze}" for maze in known)
        with tempfile.TemporaryDirectory() as place:
            words = ["--expert", f"{who} and ({mazes})", "--unlabelled", f"role = unlabelled and ({mazes})"]
            elsewhere = " and ".join(f"maze != {maze}" for maze in known)
            words += ["--test", f"role = expert and {elsewhere}", "--n-unlabelled", str(UNLABELLED)]
            begun = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-m", "messirl.app.cli", "fit", str(folder), *words, "--out", f"{place}/fit"],
                capture_output=True,
                text=True,
                check=False,
            )
            page = (Path(place) / "fit" / "report.html").is_file()
            last = done.stderr.strip().splitlines()[-1:] if done.returncode else ""
            print(
                seed,
                who,
                done.returncode,
                "page" if page else "no page",
                round(time.perf_counter() - begun, 1),
                last,
                flush=True,
            )


def main() -> None:
    """Fit, and with --commands run the command."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--splits", type=int, default=50)
    parser.add_argument("--commands", action="store_true")
    arguments = parser.parse_args()
    fits(arguments.folder, arguments.out, arguments.splits)
    if arguments.commands:
        commands(arguments.folder, arguments.splits)


if __name__ == "__main__":
    main()
