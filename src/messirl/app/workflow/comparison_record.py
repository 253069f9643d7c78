"""The record of a comparison of methods: everything that its page, the terminal and its JSON file show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from messirl import __version__
from messirl._formatting import format_nats
from messirl._text import count_noun, join_names
from messirl.app.workflow.narrative import NATS, difference
from messirl.estimators.registry import METHODS
from messirl.inference.paired_gain import Gain
from messirl.paper.experiments.rankings import Cell, MethodResult

OVERALL = "overall"


@dataclass(frozen=True)
class ComparisonRecord:
    """The result of a comparison of methods; `summary()` is the content of compare.json and benchmark.json.

    Attributes
    ----------
    title : str
        The problem, folder or benchmark.
    methods : list of str
        Their names, in the order of the request.
    cells : list of Cell
        The ranking of all methods, cell by cell.
    ranks : dict from str to dict from str to Gain
        Mean ranks of all methods, overall and by subsets of the cells.
    lead : str
        A description of the comparison, in a sentence or two.
    notes : list of str
        Further notes, such as problems that were left out.
    seconds : float
        Elapsed time; short if most results existed already.
    origin : dict
        Seed, commit and configuration.
    command : str
        The command line that reproduces it.
    """

    title: str
    methods: list[str]
    cells: list[Cell]
    ranks: dict[str, dict[str, Gain]]
    lead: str
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    origin: dict[str, Any] = field(default_factory=dict)
    command: str = ""

    @property
    def in_words(self) -> list[str]:
        """The verdict, in sentences."""
        told = _of_one(self.cells[0]) if len(self.cells) == 1 else _of_many(self)
        return [*told, *_failures(self.cells)]

    def summary(self) -> dict[str, Any]:
        """Return the content of its JSON file."""
        return {**asdict(self), "in_words": self.in_words, "version": __version__}


def part_of(experts: int, unlabelled: str) -> str:
    """Return the name of the cells with so many experts and unlabelled trajectories of this quality."""
    return f"{experts}, {unlabelled}"


def label(method: str) -> str:
    """Return the name of a method on pages and in sentences."""
    return METHODS[method].label if method in METHODS else method


def main_measure(cell: Cell, one: MethodResult) -> tuple[Gain, Gain]:
    """Return the measure that ranks a method, and its difference from the baseline method."""
    return (one.performance, one.over) if cell.truth else (one.score, one.score_over)


def shown(gain: Gain, *, signed: bool = False) -> str:
    """Return a number with its interval, if there is one."""
    text = format_nats(gain.mean, 3, signed=signed)
    return text if gain.low != gain.low else f"{text} [{format_nats(gain.low, 3)}, {format_nats(gain.high, 3)}]"


def _of_one(cell: Cell) -> list[str]:
    done = [one for one in cell.standings if one.runs]
    if not done:
        return ["No method could be fitted to these trajectories."]
    best = max(done, key=lambda one: main_measure(cell, one)[0].mean)
    value, over = main_measure(cell, best)
    unit, verb = ("", "performs") if cell.truth else (NATS, "predicts held-out experts")
    scale = "; 1 is the expert, 0 is chance" if cell.truth else ""
    first = f"Of {count_noun(len(done), 'method')}, {label(best.method)} {verb} best on average: "
    first += f"{_around(value, unit)}{scale}."
    if best.method == cell.base:
        second = f"No other method is better on average than {label(cell.base)}, the baseline."
    else:
        second = f"It is {difference(over, label(cell.base), unit)}."
    out = [first, second]
    for words, sign in (("clearly better", 1.0), ("clearly worse", -1.0)):
        gains = {one.method: main_measure(cell, one)[1] for one in done if one.method not in (cell.base, best.method)}
        some = [label(m) for m, gain in gains.items() if gain.significant and sign * gain.mean > 0.0]
        if some:
            out.append(f"{join_names(some)} {'is' if len(some) == 1 else 'are'} {words} than {label(cell.base)}.")
    return out


def _of_many(record: ComparisonRecord) -> list[str]:
    every = record.ranks[OVERALL]
    order = sorted(every, key=lambda method: every[method].mean)
    if len(order) < 2:
        return [f"{label(order[0])} is compared with no other method."]
    best, second = (_within(every[method], len(order)) for method in order[:2])
    first = (
        f"Over {count_noun(len(record.cells), 'setting')} (problem, number of experts, kind of unlabelled "
        "trajectories) "
        f"{label(order[0])} has the best mean rank of {len(order)} methods, {_around(best)}, then {label(order[1])}, "
        f"{_around(second)}"
    )
    out = [f"{first}." if best.high < second.low else f"{first}: there is no clear difference between the two."]
    for part, ranks in record.ranks.items():
        if part != OVERALL and "," not in part:
            two = sorted(ranks, key=lambda method: ranks[method].mean)[:2]
            out.append(f"with {part} {join_names([f'{label(m)} ({format_nats(ranks[m].mean, 1)})' for m in two])}")
    return [out[0], f"The two best mean ranks by subset: {'; '.join(out[1:])}."] if len(out) > 1 else out


def _within(rank: Gain, methods: int) -> Gain:
    """Return a mean rank with its interval clipped to the range of ranks."""
    return Gain(rank.mean, max(rank.low, 1.0), min(rank.high, float(methods)))


def _around(value: Gain, unit: str = "") -> str:
    """Return `1.56 [1.00, 2.36]`, or the mean only if there is no interval."""
    text = f"{format_nats(value.mean, 3)}{unit}"
    return text if value.low != value.low else f"{text} [{format_nats(value.low, 3)}, {format_nats(value.high, 3)}]"


def _failures(cells: Sequence[Cell]) -> list[str]:
    """Return one sentence for each method with failed runs, with the first reason."""
    found: dict[str, list[tuple[Cell, MethodResult]]] = {}
    for cell in cells:
        for one in cell.standings:
            if one.failure:
                found.setdefault(one.method, []).append((cell, one))
    out = []
    for method, every in found.items():
        lost, whole = sum(cell.runs - one.runs for cell, one in every), sum(cell.runs for cell in cells)
        often = "could not take part" if lost == whole else f"failed in {lost} of {count_noun(whole, 'run')}"
        out.append(f"{label(method)} {often}: {every[0][1].failure.rstrip('.')}.")
    return out
