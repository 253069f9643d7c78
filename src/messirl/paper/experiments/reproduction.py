"""Reproduction of the paper: tasks, table of results, claims. `report` makes the figures and pages."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from messirl.paper.experiments.ablation import FIGURE as LEARNERS
from messirl.paper.experiments.ablation_tables import claims_of, rows_of
from messirl.paper.experiments.claims import evaluate_claims
from messirl.paper.experiments.curves import Curves, format_interval, interval
from messirl.paper.experiments.paper_settings import FRESH, QUICK, SETTINGS, Setting, sensitivity
from messirl.paper.experiments.result_store import Store, origin
from messirl.paper.experiments.runner import Task, configuration, run
from messirl.paper.experiments.training_runs import FIGURES

QUICK_RUNS = 5


@dataclass(frozen=True)
class Plan:
    """Domains, figures and runs of a reproduction, and its output folder."""

    out: Path
    domains: tuple[str, ...] = ()  # none: all
    figures: tuple[str, ...] = ()  # none: all
    runs: int = 50
    seed: int = FRESH
    jobs: int = 1
    quick: bool = False

    @property
    def settings(self) -> dict[str, Setting]:
        """Settings of the requested domains."""
        known = QUICK if self.quick else SETTINGS
        return {name: s for name, s in known.items() if not self.domains or name in self.domains}

    def tasks(self) -> list[Task]:
        """Return all tasks, run by run, so that early results already cover every figure."""
        wanted = self.figures or FIGURES
        return [
            Task(name, setting, figure, run, self.seed + run)
            for run in range(self.runs)
            for name, setting in self.settings.items()
            for figure in setting.figures
            if figure in wanted
        ]


def reproduce(
    plan: Plan, progress: Callable[[int, int], None], executor: Any = None
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Run missing tasks and write results.parquet, summary.csv and claims.json; return table and claims.

    executor : runs the tasks instead of `plan.jobs` local processes; also in the two functions below
    """
    table = _results(plan, plan.out, QUICK if plan.quick else SETTINGS, plan.tasks(), progress, executor)
    claims = evaluate_claims(table)
    Store.write_table(table, plan.out / "results.parquet")
    Store.write_text(plan.out / "summary.csv", summary(table))
    Store.write_text(plan.out / "claims.json", json.dumps(claims, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return table, claims


def _results(
    plan: Plan,
    folder: Path,
    settings: dict[str, Setting],
    todo: list[Task],
    progress: Callable[[int, int], None],
    executor: Any,
) -> pa.Table:
    """Run the tasks whose rows the folder lacks; return the rows of all tasks."""
    store = Store(folder, origin(plan.seed, configuration(settings)))
    store.open()
    run(store, todo, plan.jobs, progress, executor)
    return store.table([task.key for task in todo])


def summary(table: pa.Table) -> str:
    """Return mean performance and 95 % interval by domain, figure, method and x as CSV; every tenth iteration."""
    curves, rows = Curves(table), []
    for domain in curves.domains:
        for figure in FIGURES:
            for method in curves.methods(domain, figure):
                curve = curves[domain, figure, method]
                for k, x in enumerate(curve.x):
                    if figure in ("iterations", "em") and x % 10 and k + 1 < len(curve.x):
                        continue
                    found = interval(curve.performance[k])
                    numbers = (found.mean, found.low, found.high, float(curve.theta_norm[k].mean()))
                    rows.append((domain, figure, method, f"{x:g}", str(found.n), *(f"{v:.6g}" for v in numbers)))
    head = ("domain", "figure", "method", "x", "runs", "performance", "low", "high", "theta_norm")
    return _csv(head, rows)


def _csv(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()


PAIRS = (
    *((method, "MaxEnt") for method in ("MESSIMAX", "MESSI-mu1", "MESSI-mu2", "MESSI-mu3")),
    ("MESSIMAX", "MESSI-mu1"),
)


def run_sensitivity(plan: Plan, progress: Callable[[int, int], None], executor: Any = None) -> list[dict[str, Any]]:
    """Run the main comparison with each setting halved and doubled; write sensitivity.csv and its table."""
    variants = {
        f"{name}: {change}": variant
        for name, setting in plan.settings.items()
        if name != "highway-far"
        for change, variant in {"as chosen": setting.main_only(), **sensitivity(setting)}.items()
    }
    if not variants:
        raise ValueError("nothing to vary: highway-far has the settings of highway; choose another domain")
    todo = [
        Task(name, variant, "iterations", run, plan.seed + run)
        for run in range(plan.runs)
        for name, variant in variants.items()
    ]
    table = _results(plan, plan.out / "sensitivity", variants, todo, progress, executor)
    Store.write_table(table, plan.out / "sensitivity.parquet")
    curves, rows = Curves(table), []
    for name in variants:
        domain, change = name.split(": ")
        row = {"domain": domain, "choice": change}
        for a, b in PAIRS:
            gap = interval(curves[name, "iterations", a].last - curves[name, "iterations", b].last)
            row[f"{a} - {b}"] = format_interval(gap)
        rows.append(row)
    Store.write_text(plan.out / "sensitivity.csv", _csv(list(rows[0]), [list(row.values()) for row in rows]))
    return rows


def compare_learners(
    plan: Plan, progress: Callable[[int, int], None], executor: Any = None
) -> tuple[pa.Table, list[dict[str, str]]]:
    """Run every learner in every domain; write learners.parquet, learners.csv and learners-claims.csv.

    Returns the table and the claims.
    """
    settings = {name: setting for name, setting in plan.settings.items() if name != "highway-far"}
    if not settings:
        raise ValueError("nothing to compare: learners are compared on highway, gridworld and pit")
    todo = [
        Task(name, setting, LEARNERS, run, plan.seed + run)
        for run in range(plan.runs)
        for name, setting in settings.items()
    ]
    table = _results(plan, plan.out / LEARNERS, QUICK if plan.quick else SETTINGS, todo, progress, executor)
    Store.write_table(table, plan.out / f"{LEARNERS}.parquet")
    claims = claims_of(table)
    for name, rows in ((LEARNERS, rows_of(table)), (f"{LEARNERS}-claims", claims)):
        Store.write_text(plan.out / f"{name}.csv", _csv(list(rows[0]), [list(row.values()) for row in rows]))
    return table, claims
