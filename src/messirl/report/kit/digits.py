"""Numbers for people: as many digits as the interval supports, and a minus that is a minus."""

from __future__ import annotations

import math
from collections.abc import Sequence

from messirl._numbers import nats, percentage
from messirl.experiments.curves import Interval

MOST = 5  # decimals


def decimals(half: float) -> int:
    """Decimals that show two digits of half an interval's width."""
    if not math.isfinite(half) or half <= 0:
        return 4
    return min(max(1 - math.floor(math.log10(half)), 0), MOST)


def fixed(value: float, places: int, *, signed: bool = False) -> str:
    """Fixed decimals; zero has no sign, and what is not a number says so."""
    if math.isnan(value):
        return "undefined"
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    text = f"{value:+.{places}f}" if signed else f"{value:.{places}f}"
    if float(text) == 0:
        text = text.lstrip("+-")
    return text.replace("-", "−")


def score(value: float, places: int = 4, *, signed: bool = False) -> str:
    """Fixed decimals, but what is not zero does not look like it."""
    if not math.isfinite(value):
        return fixed(value, places)
    return nats(value, places, signed=signed).replace("-", "−")


def share(value: float, places: int = 2) -> str:
    """Per cent; what is not zero does not look like it."""
    return percentage(value, places).replace("%", " %").replace("<", "< ")


def mean_and_interval(found: Interval, *, signed: bool = False) -> tuple[str, str]:
    """The mean, and its 95 % interval in brackets; one run has none."""
    half = (found.high - found.low) / 2
    if not math.isfinite(half):
        return fixed(found.mean, 4, signed=signed), "one run: no interval"
    if half <= 1e-6 * abs(found.mean):
        same = fixed(found.mean, 4, signed=signed)
        return (same if float(f"{found.mean:.4f}") else "0"), "in every run"
    places = decimals(half)
    for end in (found.low, found.high):  # an end that is not zero should not look like it
        while places < MOST and end != 0 and round(end, places) == 0:
            places += 1
    low, high = fixed(found.low, places), fixed(found.high, places)
    return fixed(found.mean, places, signed=signed), f"[{low}, {high}]"


def plain(value: float) -> str:
    """A setting: no more digits than it has."""
    return f"{value:g}".replace("-", "−")


def rounded(value: float | None, digits: int = 4) -> str:
    """So many digits wherever the point is; what is missing is a dash, and what is not a number says so."""
    if value is None:
        return "–"
    if not math.isfinite(value):
        return fixed(value, 0)
    return "0" if value == 0 else f"{value:#.{digits}g}".rstrip(".").replace("-", "−")


def many(n: int, what: str) -> str:
    """`1 state`, `2,000 states`."""
    return f"{n:,} {what}{'s' if n != 1 else ''}"


def listed(names: Sequence[str]) -> str:
    """`one, two and three`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
