"""What the studies share: draws in several processes, tables, paired intervals, options."""

from __future__ import annotations

import argparse
import csv
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from messirl._files import beside
from messirl.cli.progress import Progress
from messirl.execution import processes, run
from messirl.experiments.curves import interval
from messirl.report.kit.images import render, write_bytes

FRESH = 2000  # the first seed that no choice has seen


def options(description: str, runs: int) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--runs", type=int, default=runs, help=f"draws ({runs})")
    parser.add_argument("--seed", type=int, default=FRESH, help=f"seed of the first draw ({FRESH})")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of tables and figures (results)")
    return parser


Rows = list[dict[str, Any]]


def draws(work: Callable[..., Rows], tasks: Sequence[tuple[Any, ...]], jobs: int) -> Rows:
    """The rows of all draws, in the order of the tasks, whatever the number of processes."""
    with Progress(work.__module__) as progress, processes(jobs) as executor:
        return [row for rows in run(partial(_quietly, work), tasks, executor, progress) for row in rows]


def _quietly(work: Callable[..., Rows], task: tuple[Any, ...]) -> Rows:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work(*task)


def write(rows: Sequence[dict[str, Any]], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with beside(target) as part, open(part, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})


def save_figure(name: str, make: Callable[[], Any], out: Path) -> Path:
    """Draw a figure in our style into out/figures."""
    image = render(name, make)
    assert image is not None
    target = out / "figures" / f"{name}.png"
    target.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(target, image.png)
    return target


def column(rows: Iterable[dict[str, Any]], name: str, **wanted: Any) -> np.ndarray:
    """One column of the rows that have these values."""
    return np.array([row[name] for row in rows if all(row[k] == v for k, v in wanted.items())])


def shown(values: Any) -> str:
    """mean [low, high], 95 %."""
    found = interval(np.asarray(values, dtype=float))
    return f"{found.mean:+.4f} [{found.low:+.4f}, {found.high:+.4f}]"
