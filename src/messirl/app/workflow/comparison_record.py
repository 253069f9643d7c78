"""What a contest of methods found: all that its page, the terminal and its JSON file show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from messirl import __version__
from messirl._formatting import nats
from messirl._text import counted, listed
from messirl.app.workflow.narrative import NATS, difference
from messirl.estimators.registry import METHODS
from messirl.inference.paired_gain import Gain
from messirl.paper.experiments.rankings import Cell, Standing

OVERALL = "overall"


@dataclass(frozen=True)
class ContestRecord:
    """Methods against each other; `summary()` is what compare.json and benchmark.json hold.

    Attributes
    ----------
    title : str
        What was compared on.
    methods : list of str
        Their names, in the order in which they were asked for.
    cells : list of Cell
        The standings of all methods, cell by cell.
    ranks : dict from str to dict from str to Gain
        Mean ranks of all methods, overall and by parts of the cells.
    lead : str
        What was done, in a sentence or two.
    notes : list of str
        What is to be known beside it, such as what was left out.
    seconds : float
        How long it took, by the clock; little where most of it was there already.
    origin : dict
        Seed, commit and configuration.
    command : str
        The command line that makes it again.
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
        """What its JSON file holds."""
        return {**asdict(self), "in_words": self.in_words, "version": __version__}


def part_of(experts: int, unlabelled: str) -> str:
    """What the ranks of the cells with so many experts and such unlabelled trajectories are called."""
    return f"{experts}, {unlabelled}"


def label(method: str) -> str:
    """What pages and sentences call a method."""
    return METHODS[method].label if method in METHODS else method


def main_measure(cell: Cell, one: Standing) -> tuple[Gain, Gain]:
    """What a method is ranked by, and its difference to the method that all are compared with."""
    return (one.performance, one.over) if cell.truth else (one.score, one.score_over)


def shown(gain: Gain, *, signed: bool = False) -> str:
    """A number with its interval, where there is one."""
    text = nats(gain.mean, 3, signed=signed)
    return text if gain.low != gain.low else f"{text} [{nats(gain.low, 3)}, {nats(gain.high, 3)}]"


def _of_one(cell: Cell) -> list[str]:
    done = [one for one in cell.standings if one.runs]
    if not done:
        return ["No method could learn from this."]
    best = max(done, key=lambda one: main_measure(cell, one)[0].mean)
    value, over = main_measure(cell, best)
    unit, verb = ("", "performs") if cell.truth else (NATS, "predicts held-out experts")
    scale = "; 1 is the expert, 0 is chance" if cell.truth else ""
    first = f"Of {counted(len(done), 'method')}, {label(best.method)} {verb} best on average: "
    first += f"{_around(value, unit)}{scale}."
    if best.method == cell.base:
        second = f"No other is better on average than {label(cell.base)}, with which all are compared."
    else:
        second = f"It is {difference(over, label(cell.base), unit)}."
    out = [first, second]
    for words, sign in (("clearly better", 1.0), ("clearly worse", -1.0)):
        gains = {one.method: main_measure(cell, one)[1] for one in done if one.method not in (cell.base, best.method)}
        some = [label(m) for m, gain in gains.items() if gain.clear and sign * gain.mean > 0.0]
        if some:
            out.append(f"{listed(some)} {'is' if len(some) == 1 else 'are'} {words} than {label(cell.base)}.")
    return out


def _of_many(record: ContestRecord) -> list[str]:
    every = record.ranks[OVERALL]
    order = sorted(every, key=lambda method: every[method].mean)
    if len(order) < 2:
        return [f"{label(order[0])} is compared with no other method."]
    best, second = (_within(every[method], len(order)) for method in order[:2])
    first = (
        f"Over {counted(len(record.cells), 'setting')} (a problem, so many experts, such unlabelled trajectories) "
        f"{label(order[0])} has the best mean rank of {len(order)} methods, {_around(best)}, then {label(order[1])}, "
        f"{_around(second)}"
    )
    out = [f"{first}." if best.high < second.low else f"{first}: which of the two is better is not clear."]
    for part, ranks in record.ranks.items():
        if part != OVERALL and "," not in part:
            two = sorted(ranks, key=lambda method: ranks[method].mean)[:2]
            out.append(f"with {part} {listed([f'{label(m)} ({nats(ranks[m].mean, 1)})' for m in two])}")
    return [out[0], f"The best two by part, by their mean ranks: {'; '.join(out[1:])}."] if len(out) > 1 else out


def _within(rank: Gain, methods: int) -> Gain:
    """A mean rank whose interval ends where ranks do."""
    return Gain(rank.mean, max(rank.low, 1.0), min(rank.high, float(methods)))


def _around(value: Gain, unit: str = "") -> str:
    """`1.56 (95 %: 1.00 to 2.36)`; without an interval where there is none."""
    text = f"{nats(value.mean, 3)}{unit}"
    return text if value.low != value.low else f"{text} (95 %: {nats(value.low, 3)} to {nats(value.high, 3)})"


def _failures(cells: Sequence[Cell]) -> list[str]:
    """One sentence for each method that has runs without numbers, with the reason that it gave first."""
    found: dict[str, list[tuple[Cell, Standing]]] = {}
    for cell in cells:
        for one in cell.standings:
            if one.failure:
                found.setdefault(one.method, []).append((cell, one))
    out = []
    for method, every in found.items():
        lost, whole = sum(cell.runs - one.runs for cell, one in every), sum(cell.runs for cell in cells)
        often = "could not take part" if lost == whole else f"has no numbers in {lost} of {counted(whole, 'run')}"
        out.append(f"{label(method)} {often}: {every[0][1].failure.rstrip('.')}.")
    return out
