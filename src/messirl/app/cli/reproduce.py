"""`messirl reproduce`: the paper's experiments, tests of its claims, and its figures."""

from __future__ import annotations

import argparse
import os

from messirl.app.cli._options import add_cluster, executor
from messirl.app.cli._parser import Parser, count, path, seed

DOMAINS = ("highway", "gridworld", "pit", "highway-far")
FIGURES = ("iterations", "unlabelled", "nu", "lambda", "em")
WRITES = {  # files besides the parts, with one of the figures
    "report": ("results.parquet", "summary.csv", "claims.json", "report.html", "figures/any.png"),
    "sensitivity": ("sensitivity.parquet", "sensitivity.csv"),
    "learners": ("learners.parquet", "learners.csv", "learners-claims.csv", "figures/learners.png"),
}

DESCRIPTION = (
    "Run the paper's experiments, test its claims and draw its figures. An interrupted run continues when the same "
    "command is run again. The table depends on the seed, not on the number of jobs."
)


def add(made: Parser) -> None:
    """Declare the arguments of `messirl reproduce`."""
    made.add_argument("--domain", action="append", choices=DOMAINS, help="only this domain (may be repeated)")
    made.add_argument("--figure", action="append", choices=FIGURES, help="only this figure (may be repeated)")
    made.add_argument("--runs", type=count, help="runs per point (50; with --quick 5)")
    made.add_argument(
        "--seed",
        type=seed,
        help="seed of the first run (2000; with --learners 6000; settings were chosen on lower ones)",
    )
    made.add_argument("--jobs", type=count, default=os.cpu_count() or 1, help="number of processes (one per core)")
    add_cluster(made)
    made.add_argument("--quick", action="store_true", help="fewer runs and points: a first look in two minutes")
    made.add_argument(
        "--sensitivity",
        action="store_true",
        help="instead, run the sensitivity analysis: each setting halved and doubled",
    )
    made.add_argument(
        "--learners",
        action="store_true",
        help="instead, compare objectives, starts, ridges and uses of unlabelled trajectories",
    )
    made.add_argument("--out", type=path, help="folder for the results (out/reproduction; with --quick out/quick)")


def run(arguments: argparse.Namespace) -> int:
    """Run the experiments and write their report, the sensitivity analysis, or the comparison of learners."""
    if arguments.sensitivity and arguments.learners:
        raise ValueError("--sensitivity and --learners cannot be combined: give one of them")
    from pathlib import Path

    from messirl._files import check_writable
    from messirl.app.cli.progress import Progress
    from messirl.paper.experiments.paper_settings import FRESH, FRESH_LEARNERS
    from messirl.paper.experiments.reproduction import QUICK_RUNS, Plan, compare_learners, reproduce, run_sensitivity

    plan = Plan(
        out=arguments.out or Path("out/quick" if arguments.quick else "out/reproduction"),
        domains=tuple(arguments.domain or ()),
        figures=tuple(arguments.figure or ()),
        runs=arguments.runs or (QUICK_RUNS if arguments.quick else 50),
        seed=(FRESH_LEARNERS if arguments.learners else FRESH) if arguments.seed is None else arguments.seed,
        jobs=arguments.jobs,
        quick=arguments.quick,
    )
    if plan.quick and not plan.settings:
        raise ValueError("highway-far is not part of --quick: run it without --quick")
    if not plan.tasks():
        raise ValueError("nothing to run: this domain does not have this figure (highway-far has only iterations)")
    kind = "sensitivity" if arguments.sensitivity else "learners" if arguments.learners else "report"
    for name in WRITES[kind]:  # fail now, not after hours of work
        check_writable(plan.out / name)
    if arguments.sensitivity:
        with Progress("sensitivity", "parts") as progress, executor(arguments.cluster) as workers:
            run_sensitivity(plan, progress, workers)
        print(f"{plan.out / 'sensitivity.csv'}: each setting halved and doubled")
        return 0
    if arguments.learners:
        with Progress("learners", "parts") as progress, executor(arguments.cluster) as workers:
            compared, asked = compare_learners(plan, progress, workers)
        from messirl.app.report.common.images import render
        from messirl.app.report.paper.ablation_figure import learners_figure
        from messirl.paper.experiments.curves import Curves

        render("learners", lambda: learners_figure(Curves(compared)), plan.out / "figures")
        print(f"{plan.out / 'learners.csv'}: gain of each learner")
        print(f"{plan.out / 'learners-claims.csv'}: {_counted([claim['verdict'] for claim in asked])}")
        return 0
    with Progress("reproduction", "parts") as progress, executor(arguments.cluster) as workers:
        table, claims = reproduce(plan, progress, workers)
    from messirl.app.report.common.method_style import sort_domains
    from messirl.app.report.paper.reproduction_page import write_report
    from messirl.app.report.paper.summary import sentences
    from messirl.paper.experiments.curves import Curves

    page, curves = write_report(table, claims, plan.out), Curves(table)
    for words in sentences(curves, sort_domains(curves.domains)):
        print(words)
    print(_counted([claim["verdict"] for claim in claims]))
    print(f"report: {page}")
    return 0


def _counted(verdicts: list[str]) -> str:
    counts = ", ".join(f"{verdicts.count(v)} {v}" for v in ("holds", "does not hold", "undecided"))
    return f"{len(verdicts)} claims tested: {counts}"
