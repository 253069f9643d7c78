"""The command `messirl`. Nothing heavy is imported before there is work to do.

Exit codes: 0 done, 2 something in the input or the surroundings, 1 a fault of ours, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

DOMAINS = ("highway", "gridworld", "pit", "highway-far")
FIGURES = ("iterations", "unlabelled", "nu", "lambda", "em")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    arguments = parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except KeyboardInterrupt:
        print("messirl: interrupted; what was finished is kept, run the same command to go on", file=sys.stderr)
        return 130
    except Exception as error:
        if arguments.debug:
            traceback.print_exc()
        text, code = _explain(error)
        print(f"messirl: {text}", file=sys.stderr)
        return code


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def parser() -> Parser:
    """The command line."""
    top = Parser(
        prog="messirl",
        description="Learn what an expert wants from few expert trajectories and many of unknown quality.",
    )
    top.add_argument("--version", action="version", version=_version())
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _reproduce(commands)
    return top


def _reproduce(commands: argparse._SubParsersAction[Parser]) -> None:
    command = commands.add_parser(
        "reproduce",
        help="run the paper's experiments and decide its claims",
        description="Run the paper's experiments, decide its claims, draw its figures. Stopped at any moment, the same "
        "command goes on where it was; the same seed gives the same table whatever the number of jobs.",
    )
    command.add_argument("--domain", action="append", choices=DOMAINS, help="only this domain (may be repeated)")
    command.add_argument("--figure", action="append", choices=FIGURES, help="only this figure (may be repeated)")
    command.add_argument("--runs", type=_count, help="runs per point (50; with --quick 5)")
    command.add_argument(
        "--seed", type=_seed, default=2000, help="seed of the first run (2000; lower ones were used for choosing)"
    )
    command.add_argument("--jobs", type=_count, default=os.cpu_count() or 1, help="processes (one a core)")
    command.add_argument("--quick", action="store_true", help="fewer runs and points: a first look in two minutes")
    command.add_argument("--sensitivity", action="store_true", help="instead: every choice of ours halved and doubled")
    command.add_argument("--out", type=Path, help="folder of the results (out/reproduction; with --quick out/quick)")
    command.add_argument("--debug", action="store_true", help="show the traceback of an error")
    command.set_defaults(run=_run_reproduce)


def _run_reproduce(arguments: argparse.Namespace) -> int:
    from messirl.experiments.reproduce import QUICK_RUNS, Plan, reproduce, run_sensitivity
    from messirl.report.progress import Progress

    plan = Plan(
        out=arguments.out or Path("out/quick" if arguments.quick else "out/reproduction"),
        domains=tuple(arguments.domain or ()),
        figures=tuple(arguments.figure or ()),
        runs=arguments.runs or (QUICK_RUNS if arguments.quick else 50),
        seed=arguments.seed,
        jobs=arguments.jobs,
        quick=arguments.quick,
    )
    if plan.quick and not plan.settings:
        raise ValueError("--quick leaves highway-far out: run it without --quick")
    if not plan.tasks():
        raise ValueError("nothing to run: this domain does not have this figure (highway-far has only iterations)")
    if arguments.sensitivity:
        with Progress("sensitivity") as progress:
            run_sensitivity(plan, progress)
        print(f"{plan.out / 'sensitivity.csv'}: every choice halved and doubled")
        return 0
    with Progress("reproduction") as progress:
        table, claims = reproduce(plan, progress)
    from messirl.report.reproduction import write_report

    page = write_report(table, claims, plan.out)
    verdicts = [claim["verdict"] for claim in claims]
    counts = ", ".join(f"{verdicts.count(v)} {v}" for v in ("holds", "does not hold", "undecided"))
    print(f"{len(claims)} claims decided: {counts}")
    print(f"report: {page}")
    return 0


def _explain(error: Exception) -> tuple[str, int]:
    """One sentence and an exit code for what went wrong."""
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        return f"{error.strerror or error}{where}: nothing that was finished is lost", 2
    if isinstance(error, ValueError):
        return str(error), 2
    if type(error).__name__ == "BrokenProcessPool":
        return "a worker process was killed (out of memory?): run the same command to go on, perhaps with --jobs 1", 1
    return f"internal error, {type(error).__name__}: {error}; run again with --debug and report it", 1


def _seed(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) >= 2**31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 2147483647")
    return int(text)


def _count(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return value


def _version() -> str:
    from messirl import __version__

    return f"messirl {__version__}"


if __name__ == "__main__":
    sys.exit(main())
