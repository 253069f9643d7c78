"""Shared code of `messirl compare` and `messirl benchmark`: options, and how a comparison is written and shown."""

from __future__ import annotations

import math
import os

from messirl._formatting import format_nats
from messirl.app.cli._options import add_cluster
from messirl.app.cli._parser import Parser, StoreOnce, count, one_line
from messirl.estimators.registry import METHODS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from messirl.app.cli._output_dir import Results
    from messirl.app.workflow.comparison_record import ComparisonRecord
    from messirl.estimators.registry import Method
    from messirl.paper.experiments.rankings import Cell, MethodResult


def add_methods(made: Parser) -> None:
    """Add the option that names the methods."""
    every = f"methods to compare, or all (a core of eight). Available: {', '.join(METHODS)}"
    made.add_argument("--methods", action=StoreOnce, metavar="A,B,…", help=every)


def add_work(made: Parser) -> None:
    """Add the options for parallel and distributed work."""
    made.add_argument("--jobs", type=count, default=os.cpu_count() or 1, help="number of processes (one per core)")
    add_cluster(made)


def parse_methods(text: str | None, default: tuple[str | Method, ...]) -> tuple[str | Method, ...]:
    """Return the methods that an option names."""
    if text is None:
        return default
    names = tuple(word.strip() for word in text.split(",") if word.strip())
    if not names:
        raise ValueError("--methods names no method: give at least one, or leave it out")
    low = [name.lower() for name in names]
    twice = next((name for name in names if low.count(name.lower()) > 1), None)
    if twice is not None:
        raise ValueError(f"--methods names {twice!r} twice: name it once")
    return tuple(METHODS) if names == ("all",) else names


def finish(record: ComparisonRecord, out: Results, name: str, *, report: bool, json: bool) -> int:
    """Write the table, the report and the summary of a comparison; print the verdict."""
    from messirl._files import atomic_path
    from messirl.paper.experiments.rankings import as_csv

    with atomic_path(out.place / f"{name}.csv") as part:
        part.write_text(as_csv(record.cells), encoding="utf-8")
    files = {"table": out.folder / f"{name}.csv"}
    if report:
        from messirl.app.report.comparison.comparison_page import write_comparison_report

        write_comparison_report(record, out.place)
        files["report"] = out.folder / "report.html"
    return out.finish(f"{name}.json", record.summary(), text_of(record, files), json=json)


def text_of(record: ComparisonRecord, files: dict[str, Path]) -> str:
    """Return the text for the terminal: the verdict and the table, or mean ranks if there are many cells."""
    lines = [*map(one_line, record.in_words), "", one_line(record.lead), *map(one_line, record.notes), ""]
    lines += _table(record.cells[0]) if len(record.cells) == 1 else _ranks(record)
    return "\n".join([*lines, "", *(f"{name + ':':<8}{place}" for name, place in files.items())])


def _table(cell: Cell) -> list[str]:
    from messirl.app.workflow.comparison_record import label

    measure = "performance" if cell.truth else "nats per step"
    head = f"{measure:>12}  {'over ' + label(cell.base):^27}  {'score':>8} {'distance':>8} {'solved':>7} {'cpu s':>7}"
    return [head, *(_line(cell, one) for one in cell.standings)]


def _line(cell: Cell, one: MethodResult) -> str:
    from messirl.app.workflow.comparison_record import label, main_measure, shown

    if not one.runs:
        return f"{'-':>12}  {label(one.method)}: {one_line(one.failure)}"
    value, over = main_measure(cell, one)
    gained = "" if one.method == cell.base else shown(over, signed=True)
    far = "-" if math.isnan(one.distance.mean) else format_nats(one.distance.mean, 2)
    numbers = f"{format_nats(one.score.mean, 3):>8} {far:>8} {one.solved:7.0f} {one.cpu:7.2f}"
    return f"{format_nats(value.mean, 3):>12}  {gained:^27}  {numbers}  {label(one.method)}"


def _ranks(record: ComparisonRecord) -> list[str]:
    from messirl.app.workflow.comparison_record import OVERALL, label, shown

    parts = [part for part in record.ranks if part != OVERALL and "," not in part]
    order = sorted(record.methods, key=lambda method: record.ranks[OVERALL][method].mean)
    lines = [f"{'mean rank':>22}" + "".join(f"{part.removeprefix('unlabelled '):>11}" for part in parts)]
    for method in order:
        numbers = "".join(f"{format_nats(record.ranks[part][method].mean, 2):>11}" for part in parts)
        lines.append(f"{shown(record.ranks[OVERALL][method]):>22}{numbers}  {label(method)}")
    return lines
