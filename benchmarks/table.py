"""The table of results."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One line: what was measured, ours, the other, how many times better ours is, and what is asked for."""

    what: str
    ours: str
    other: str
    ratio: float | None = None
    target: float | None = None

    def cells(self) -> tuple[str, ...]:
        ratio = "" if self.ratio is None else f"{self.ratio:.3g}×" if self.ratio < 100 else f"{self.ratio:.0f}×"
        target = "" if self.target is None else f">= {self.target:g}×"
        if self.ratio is not None and self.target is not None and self.ratio < self.target:
            target += " missed"
        return self.what, self.ours, self.other, ratio, target


def seconds(t: float) -> str:
    """A time in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if t >= size:
            return f"{t / size:.3g} {unit}"
    return f"{t / 1e-6:.3g} µs"


def markdown(rows: list[Row]) -> str:
    """The table, aligned, as it stands in docs/performance.md."""
    head = ("what", "messirl", "against", "ratio", "target")
    lines = [head, *(row.cells() for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    text = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) + " |" for line in lines]
    text.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return "\n".join(text)
