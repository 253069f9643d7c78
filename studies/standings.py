"""Keeps a benchmark and comparisons in results/, and writes the tables of docs/benchmark.md; a test compares the two.

python -m studies.standings [FOLDER …], each the --out of a whole `messirl benchmark`, or of `messirl compare` with all
methods on the gridworld or on the highway.
"""

from __future__ import annotations

import csv
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from messirl.estimators.registry import METHODS
from studies.tables import RESULTS, head, row, with_tables

PAGE = Path("docs/benchmark.md")
QUALITIES = {"all good": "all good", "half good": "half", "none good": "none"}
EXPERTS = ("1", "5", "20")
PROBLEMS = ("gridworld", "highway", "pit", "FrozenLake", "Taxi", "CliffWalking", "garnet", "network")
ALONE = "MaxEnt"
DIGITS = {"gridworld": 2, "highway": 3}  # of the comparisons of all methods

Rows = list[dict[str, str]]


def keep(folder: Path, results: Path = RESULTS) -> None:
    """Copy what results/ holds of a benchmark or of a comparison."""
    if (folder / "benchmark.csv").exists():
        shutil.copyfile(folder / "benchmark.csv", results / "benchmark.csv")
        shutil.copyfile(folder / "figures" / "ranks.png", results / "figures" / "benchmark.png")
        return
    shutil.copyfile(folder / "compare.csv", results / f"compare-{_read(folder / 'compare.csv')[0]['problem']}.csv")


def cells(rows: Rows, what: Callable[[Rows], str], names: list[str], first: str, last: str | None = None) -> list[str]:
    """A table with a row per method, and in each cell what is to be said of its eight problems."""
    settings = [(experts, quality) for experts in EXPERTS for quality in QUALITIES]
    titles = [
        f"{experts} expert{'s' if experts != '1' else ''}: {QUALITIES[quality]}"
        if quality == "all good"
        else QUALITIES[quality]
        for experts, quality in settings
    ]
    lines = head([first, *titles, *([] if last is None else [last])])
    for name in names:
        own = [line for line in rows if line["method"] == name]
        told = [
            what([line for line in own if (line["experts"], line["unlabelled"]) == setting]) for setting in settings
        ]
        lines.append(row([METHODS[name].label, *told, *([] if last is None else [f"{_mean(own, 'rank'):.1f}"])]))
    return lines


def clear(rows: Rows) -> str:
    """In how many of these a method is clearly better, and clearly worse, than the experts alone."""
    better, worse = (
        sum(sign * float(line[end]) > 0 for line in rows) for sign, end in ((1, "over_low"), (-1, "over_high"))
    )
    return f"{better} / {worse}"


def example(rows: Rows, names: list[str]) -> list[str]:
    """One expert and others of whom half are good, problem by problem."""
    lines = head(["1 expert, half of the unlabelled good", *PROBLEMS])
    these = {
        (line["method"], line["problem"]): line
        for line in rows
        if line["experts"] == "1" and line["unlabelled"] == "half good"
    }
    for name in names:
        own = [these[name, problem] for problem in PROBLEMS]
        told = [
            f"{float(line['performance']):.2f} ± {(float(line['high']) - float(line['low'])) / 2.0:.2f}" for line in own
        ]
        lines.append(row([METHODS[name].label, *told]))
    return lines


def compared(results: Path) -> list[str]:
    """All methods on the gridworld and on the highway."""
    found = {
        problem: {line["method"]: line for line in _read(results / f"compare-{problem}.csv")} for problem in DIGITS
    }
    order = sorted(found["gridworld"], key=lambda name: -float(found["gridworld"][name]["performance"]))
    titles = [title for problem in DIGITS for title in (problem, "over the experts alone")]
    lines = head(["", *titles, "MDPs solved", "CPU s"])
    for name in order:
        own = {problem: found[problem][name] for problem in DIGITS}
        told = []
        for problem, digits in DIGITS.items():
            line = own[problem]
            told.append(_interval(line, ("performance", "low", "high"), f".{digits}f"))
            over = ("over_alone", "over_low", "over_high")
            told.append("" if name == ALONE else _interval(line, over, f"+.{digits}f"))
        solved = ", ".join(f"{float(line['solved']):.0f}" for line in own.values())
        spent = ", ".join(f"{float(line['cpu']):.2f}" for line in own.values())
        lines.append(row([METHODS[name].label, *told, solved, spent]))
    return lines


def tables(results: Path = RESULTS) -> dict[str, list[str]]:
    """Every table of the page, by the first words of its first line."""
    rows = _read(results / "benchmark.csv")
    by_rank = sorted(
        {line["method"] for line in rows}, key=lambda name: _mean([r for r in rows if r["method"] == name], "rank")
    )
    means, gains = (
        "mean performance over eight problems",
        "problems where clearly better / clearly worse than MaxEnt-IRL",
    )
    others = [name for name in by_rank if name != ALONE]
    return {
        f"| {means}": cells(rows, lambda own: f"{_mean(own, 'performance'):.2f}", by_rank, means, "mean rank"),
        f"| {gains}": cells(rows, clear, others, gains),
        "| 1 expert, half": example(rows, by_rank),
        "|  | gridworld": compared(results),
    }


def filled(page: str, results: Path = RESULTS) -> str:
    """The page with its tables as the results have them."""
    return with_tables(page, tables(results))


def _read(place: Path) -> Rows:
    with open(place, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _mean(rows: Rows, column: str) -> float:
    return float(np.mean([float(line[column]) for line in rows]))


def _interval(line: dict[str, str], columns: tuple[str, str, str], form: str) -> str:
    middle, low, high = (format(float(line[name]), form).replace("-", "−") for name in columns)
    return f"{middle} [{low}, {high}]"


if __name__ == "__main__":
    for given in sys.argv[1:]:
        keep(Path(given))
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
