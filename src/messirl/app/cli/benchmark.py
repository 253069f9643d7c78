"""`messirl benchmark`: core methods over many problems, kinds of unlabelled trajectories and numbers of experts."""

from __future__ import annotations

import argparse

from messirl.app.cli._comparison import add_methods, add_work, finish, parse_methods
from messirl.app.cli._options import add_results, executor
from messirl.app.cli._parser import Parser, count, note, seed

DESCRIPTION = (
    "Compare methods on the paper's three problems, on FrozenLake, Taxi and CliffWalking (if gymnasium is installed), "
    "and on two random families. All, half or none of the unlabelled trajectories are good, and there are 1, 5 or 20 "
    "experts. Writes benchmark.csv, benchmark.json and a report. An interrupted benchmark continues when the same "
    "command is run again; a larger --runs adds runs."
)
RUNS, QUICK_RUNS = 20, 2
QUICK_EXPERTS = (1, 5)


def add(made: Parser) -> None:
    """Declare the arguments of `messirl benchmark`."""
    made.add_argument("--quick", action="store_true", help="1 and 5 experts, 2 runs: a first look in two minutes")
    made.add_argument("--runs", type=count, help=f"runs per cell ({RUNS}; with --quick {QUICK_RUNS})")
    made.add_argument("--seed", type=seed, help="seed of the first run (9000)")
    add_methods(made)
    add_work(made)
    add_results(made, "out/benchmark", "benchmark.csv and benchmark.json", force="")


def run(arguments: argparse.Namespace) -> int:
    """Run the benchmark; write the table, a summary and a report."""
    from dataclasses import replace

    from messirl.app.cli._output_dir import Results
    from messirl.app.workflow.comparison import EXPERTS, CompareSettings, benchmark

    first = CompareSettings()
    settings = CompareSettings(
        methods=parse_methods(arguments.methods, first.methods),
        runs=arguments.runs or (QUICK_RUNS if arguments.quick else RUNS),
        seed=first.seed if arguments.seed is None else arguments.seed,
        jobs=arguments.jobs,
    )
    experts = QUICK_EXPERTS if arguments.quick else EXPERTS
    asked = {"report": arguments.report, "default": arguments.usual_out}
    with Results.from_options(arguments.out, "benchmark.json", "benchmark.csv", **asked) as out:
        with executor(arguments.cluster) as workers:
            record = benchmark(settings, arguments.out, out.watcher, workers, experts)
        for text in record.notes:
            note(text)
        record = replace(record, command=arguments.command)
        return finish(record, out, "benchmark", report=arguments.report, json=arguments.json)
