"""What the studies share: draws in several processes, tables, paired intervals, options."""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from messirl._files import atomic_path
from messirl.app.cli.progress import Progress
from messirl.app.report.common.images import render, write_bytes
from messirl.paper.experiments.curves import interval
from messirl.parallel import processes, run

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


def resumed(
    work: Callable[..., Rows],
    tasks: Sequence[tuple[Any, ...]],
    about: Sequence[dict[str, Any]],
    jobs: int,
    target: Path,
) -> Rows:
    """The same, kept in a table after every draw: what the table holds is not drawn again, and stays in it.

    about : of each task the columns that tell its rows from all others
    """
    names = list(about[0])
    kept: dict[tuple[Any, ...], Rows] = {}
    for row in read(target) if target.exists() else []:
        kept.setdefault(tuple(row[name] for name in names), []).append(row)
    keys = [tuple(own.values()) for own in about]
    order = [key for key in kept if key not in keys] + keys
    missing = [i for i, key in enumerate(keys) if key not in kept]
    with Progress(work.__module__) as progress, processes(jobs) as executor:
        found = run(partial(_quietly, work), [tasks[i] for i in missing], executor, progress)
        for i, rows in zip(missing, found, strict=True):
            kept[keys[i]] = rows
            write([row for key in order for row in kept.get(key, ())], target)
    return read(target)


def _quietly(work: Callable[..., Rows], task: tuple[Any, ...]) -> Rows:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work(*task)


def write(rows: Sequence[dict[str, Any]], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(target) as part, open(part, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})


def read(table: Path) -> Rows:
    """The rows of a table, its numbers as numbers."""
    with open(table, newline="", encoding="utf-8") as file:
        return [{name: _value(text) for name, text in row.items()} for row in csv.DictReader(file)]


def _value(text: str) -> Any:
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


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


def counts(said: Iterable[Any], words: Iterable[str]) -> str:
    """How often each of the words was said."""
    every = list(said)
    return ", ".join(f"{word} {every.count(word)}" for word in words)


def shown(values: Any) -> str:
    """mean [low, high], 95 %."""
    found = interval(np.asarray(values, dtype=float))
    return f"{found.mean:+.4f} [{found.low:+.4f}, {found.high:+.4f}]"
