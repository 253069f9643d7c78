"""`messirl compare`: methods compared on a problem with known truth or on your own data."""

from __future__ import annotations

import argparse

from messirl.app.cli._comparison import add_methods, add_work, finish, parse_methods
from messirl.app.cli._options import add_results, add_split, executor
from messirl.app.cli._parser import Parser, count, problem_in

PROBLEMS = ("gridworld", "highway", "pit", "FrozenLake", "Taxi", "CliffWalking", "garnet", "network")
QUALITIES = ("all", "half", "none")
OF_FOLDERS = ("expert", "unlabelled", "test")
DESCRIPTION = (
    "Compare methods on the same trajectories and seeds, with hyperparameters chosen in the same way. The problem is "
    f"a built-in one, whose truth is known ({', '.join(PROBLEMS)}), or a folder of yours, where held-out experts give "
    "the score. Writes compare.json, compare.csv and a report. An interrupted comparison continues when the same "
    "command is run again."
)


def add(made: Parser) -> None:
    """Declare the arguments of `messirl compare`."""
    made.add_argument("what", metavar="PROBLEM|FOLDER", help="a built-in problem, or a problem folder")
    add_methods(made)
    add_split(made)
    group = made.add_argument_group("built-in problems")
    group.add_argument("--quality", choices=QUALITIES, help="how many of the unlabelled trajectories are good (half)")
    group.add_argument("--runs", type=count, help="draws of the problem (10)")
    add_work(made)
    add_results(made, "out/compare", "compare.csv and compare.json", force="")


def run(arguments: argparse.Namespace) -> int:
    """Compare methods; write the table, a summary and a report."""
    from dataclasses import replace
    from pathlib import Path

    from messirl.app.cli._output_dir import Results
    from messirl.app.workflow import comparison as work
    from messirl.app.workflow.split import Split

    name = None if Path(arguments.what).is_dir() else work.find_problem(arguments.what)
    first = work.CompareSettings()
    settings = work.CompareSettings(
        methods=parse_methods(arguments.methods, first.methods),
        runs=arguments.runs or first.runs,
        n_expert=arguments.n_expert or first.n_expert,
        n_unlabelled=arguments.n_unlabelled or first.n_unlabelled,
        quality=f"{arguments.quality or 'half'} good",
        seed=first.seed if arguments.seed is None else arguments.seed,
        jobs=arguments.jobs,
    )
    asked = {"report": arguments.report, "default": arguments.usual_out}
    with Results.from_options(arguments.out, "compare.json", "compare.csv", **asked) as out:
        if name is not None:
            given = next((option for option in OF_FOLDERS if getattr(arguments, option) is not None), None)
            if given is not None:
                raise ValueError(f"--{given} has no effect on the built-in problem {name}: leave it out")
            with executor(arguments.cluster) as workers:
                record = work.compare_synthetic(name, settings, arguments.out, out.watcher, workers)
        else:
            if not Path(arguments.what).exists():
                raise ValueError(work.no_such_problem(arguments.what))
            for option in ("quality", "runs"):
                if getattr(arguments, option) is not None:
                    raise ValueError(f"--{option} has no effect on the folder {arguments.what}: leave it out")
            place = Path(arguments.what)
            sizes = arguments.n_expert, arguments.n_unlabelled
            split = Split(arguments.expert, arguments.unlabelled, arguments.test, *sizes, seed=arguments.seed or 0)
            with executor(arguments.cluster) as workers:
                record = work.compare_folder(
                    problem_in(place), split, settings, arguments.out, out.watcher,
                    folder=place.resolve().name, executor=workers,
                )  # fmt: skip
        record = replace(record, command=arguments.command)
        return finish(record, out, "compare", report=arguments.report, json=arguments.json)
