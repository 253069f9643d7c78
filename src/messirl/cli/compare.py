"""`messirl compare`: methods side by side, on a problem with a known truth or on your own data."""

from __future__ import annotations

import argparse
import os

from messirl._numbers import nats
from messirl.cli.common import Parser, count, one_line, problem_in
from messirl.cli.options import add_cluster, add_results, add_split, executor
from messirl.estimators.methods import METHODS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from messirl.experiments.standings import Cell, Standing
    from messirl.workflow.contest_record import ContestRecord

PROBLEMS = ("gridworld", "highway", "pit", "FrozenLake", "Taxi", "CliffWalking", "garnet", "network")
QUALITIES = ("all", "half", "none")
OF_FOLDERS = ("expert", "unlabelled", "test")
DESCRIPTION = (
    "Methods side by side: the same trajectories, the same seeds, knobs chosen the same way for all. On one of our "
    f"problems, whose truth is known ({', '.join(PROBLEMS)}), or on a folder of yours, where held-out experts judge. "
    "Writes compare.json, compare.csv and a report. Stopped at any moment, the same command goes on where it was."
)


def add(made: Parser) -> None:
    """Declare the arguments of `messirl compare`."""
    made.add_argument("what", metavar="PROBLEM|FOLDER", help="one of our problems, or a problem folder")
    add_methods(made)
    add_split(made)
    group = made.add_argument_group("our problems")
    group.add_argument("--quality", choices=QUALITIES, help="how many of the unlabelled are good (half)")
    group.add_argument("--runs", type=count, help="draws of the problem (10)")
    add_work(made)
    add_results(made, "out/compare", "compare.csv and compare.json")


def add_methods(made: Parser) -> None:
    """Add the option that names the methods."""
    every = "all; these are " + ", ".join(METHODS)
    made.add_argument("--methods", metavar="A,B,…", help=f"which, or {every} (a core of eight)")


def add_work(made: Parser) -> None:
    """Add the options that say where the work is done."""
    made.add_argument("--jobs", type=count, default=os.cpu_count() or 1, help="processes (one per core)")
    add_cluster(made)


def run(arguments: argparse.Namespace) -> int:
    """Compare methods; write the table, a summary and a page."""
    from pathlib import Path

    from messirl.cli.results import Results
    from messirl.workflow import compare as work
    from messirl.workflow.split import Split

    name = None if Path(arguments.what).is_dir() else work.problem_named(arguments.what)
    out = Results(arguments.out, ("compare.json", "compare.csv", *(("report.html",) if arguments.report else ())))
    out.draws, first = arguments.report, work.CompareSettings()
    settings = work.CompareSettings(
        methods=methods_of(arguments.methods, first.methods),
        runs=arguments.runs or first.runs,
        n_expert=arguments.n_expert or first.n_expert,
        n_unlabelled=arguments.n_unlabelled or first.n_unlabelled,
        quality=f"{arguments.quality or 'half'} good",
        seed=first.seed if arguments.seed is None else arguments.seed,
        jobs=arguments.jobs,
    )
    if name is not None:
        given = next((option for option in OF_FOLDERS if getattr(arguments, option) is not None), None)
        if given is not None:
            raise ValueError(f"--{given} is of a folder, and {name} is a problem of ours: leave it out")
        with executor(arguments.cluster) as workers:
            record = work.compare_world(name, settings, arguments.out, out.watcher, workers)
    else:
        if not Path(arguments.what).exists():
            raise ValueError(work.no_such_problem(arguments.what))
        for option in ("quality", "runs"):
            if getattr(arguments, option) is not None:
                raise ValueError(f"--{option} is of our problems, and {arguments.what} is a folder: leave it out")
        place = Path(arguments.what)
        wanted = (arguments.expert, arguments.unlabelled, arguments.test, arguments.n_expert, arguments.n_unlabelled)
        split = Split(*wanted, seed=arguments.seed or 0)
        with executor(arguments.cluster) as workers:
            record = work.compare_folder(
                problem_in(place), split, settings, arguments.out, out.watcher,
                folder=place.resolve().name, executor=workers,
            )  # fmt: skip
    return finish(record, out, arguments, "compare")


def methods_of(text: str | None, usual: tuple[str, ...]) -> tuple[str, ...]:
    """The names that an option gives."""
    if text is None:
        return usual
    names = tuple(word.strip() for word in text.split(",") if word.strip())
    return tuple(METHODS) if names == ("all",) else names


def finish(record: ContestRecord, out: Any, arguments: argparse.Namespace, name: str) -> int:
    """Write what a contest found: the table, the page and the summary; print the verdict."""
    from dataclasses import replace

    from messirl._files import beside
    from messirl.experiments.standings import as_csv

    record, folder = replace(record, command=arguments.command), arguments.out
    with beside(folder / f"{name}.csv") as part:
        part.write_text(as_csv(record.cells), encoding="utf-8")
    files = {"table": folder / f"{name}.csv"}
    if arguments.report:
        from messirl.report.contest.page import write_contest_report

        files["report"] = write_contest_report(record, folder)
    return int(out.finish(f"{name}.json", record.summary(), text_of(record, files), json=arguments.json))


def text_of(record: ContestRecord, files: dict[str, Path]) -> str:
    """The verdict and the table, for the terminal; of many cells the ranks alone."""
    lines = [*map(one_line, record.in_words), "", one_line(record.lead), *map(one_line, record.notes), ""]
    lines += _table(record.cells[0]) if len(record.cells) == 1 else _ranks(record)
    return "\n".join([*lines, "", *(f"{name + ':':<8}{place}" for name, place in files.items())])


def _table(cell: Cell) -> list[str]:
    from messirl.workflow.contest_record import label

    measure = "performance" if cell.truth else "nats a step"
    head = f"{measure:>12}  {'over ' + label(cell.base):^27}  {'score':>8} {'distance':>8} {'solved':>7} {'cpu s':>7}"
    return [head, *(_line(cell, one) for one in cell.standings)]


def _line(cell: Cell, one: Standing) -> str:
    from messirl.workflow.contest_record import label, main_measure, shown

    if not one.runs:
        return f"{'-':>12}  {one_line(one.failure)[:60]:27}  {label(one.method)}"
    value, over = main_measure(cell, one)
    gained = "" if one.method == cell.base else shown(over, signed=True)
    numbers = f"{nats(one.score.mean, 3):>8} {nats(one.distance.mean, 2):>8} {one.solved:7.0f} {one.cpu:7.2f}"
    return f"{nats(value.mean, 3):>12}  {gained:^27}  {numbers}  {label(one.method)}"


def _ranks(record: ContestRecord) -> list[str]:
    from messirl.workflow.contest_record import OVERALL, label, shown

    parts = [part for part in record.ranks if part != OVERALL and "," not in part]
    order = sorted(record.methods, key=lambda method: record.ranks[OVERALL][method].mean)
    width = max(len(part) for part in parts) if parts else 0
    head = f"{'mean rank':>22}  " + "  ".join(f"{part:>{width}}" for part in parts)
    return [
        head,
        *(
            f"{shown(record.ranks[OVERALL][m]):>22}  "
            + "  ".join(f"{nats(record.ranks[part][m].mean, 2):>{width}}" for part in parts)
            + f"  {label(m)}"
            for m in order
        ),
    ]
