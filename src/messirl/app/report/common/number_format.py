"""Numbers as text for pages: as many digits as the interval supports, and a typographic minus sign."""

from __future__ import annotations

import math
import re

from messirl._formatting import decimals, nats, percentage
from messirl.paper.experiments.curves import Interval

MOST = 5  # decimals
MOST_SMALL = 9  # of a number that is the same in every run
ROUNDING = 1e-9  # a difference that is smaller is none


def fixed(value: float, places: int, *, signed: bool = False) -> str:
    """The value with fixed decimals; zero has no sign; NaN is "undefined", infinity ∞."""
    if math.isnan(value):
        return "undefined"
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    text = f"{value:+.{places}f}" if signed else f"{value:.{places}f}"
    if float(text) == 0:
        text = text.lstrip("+-")
    return text.replace("-", "−")


def score(value: float, places: int = 4, *, signed: bool = False) -> str:
    """The value with fixed decimals; one that would round to zero is written so that it does not look like zero."""
    if not math.isfinite(value):
        return fixed(value, places)
    return nats(value, places, signed=signed).replace("-", "−")


def share(value: float, places: int = 2) -> str:
    """A share in per cent; one that would round to zero is written so that it does not look like zero."""
    return percentage(value, places).replace("%", " %").replace("<", "< ")


def mean_and_interval(found: Interval, *, signed: bool = False) -> tuple[str, str]:
    """The mean, and its 95 % interval in brackets; one run has none."""
    half = (found.high - found.low) / 2
    if not math.isfinite(half):
        return fixed(found.mean, 4, signed=signed), "one run: no interval"
    if half <= 1e-6 * abs(found.mean):
        if abs(found.mean) < ROUNDING:
            return "0", "in every run"
        places = 4  # one that is not zero should not look like zero
        while places < MOST_SMALL and not float(f"{found.mean:.{places}f}"):
            places += 1
        return fixed(found.mean, places, signed=signed), "in every run"
    places = decimals(half)
    for end in (found.low, found.high):  # an end that is not zero should not look like zero
        while places < MOST and end != 0 and round(end, places) == 0:
            places += 1
    low, high = fixed(found.low, places), fixed(found.high, places)
    return fixed(found.mean, places, signed=signed), f"[{low}, {high}]"


def plain(value: float) -> str:
    """A setting with no more digits than it was given with."""
    return f"{value:g}".replace("-", "−")


def rounded(value: float | None, digits: int = 4) -> str:
    """The value with so many significant digits; a dash if it is missing, words if it is not finite."""
    if value is None:
        return "–"
    if not math.isfinite(value):
        return fixed(value, 0)
    return "0" if value == 0 else f"{value:#.{digits}g}".rstrip(".").replace("-", "−")


def many(n: int, what: str) -> str:
    """`1 state`, `2,000 states`."""
    return f"{n:,} {what}{'s' if n != 1 else ''}"


def as_sentence(words: str) -> str:
    """A sentence for a page: it begins with a capital, unless with a name of the program; its minus signs are ones."""
    name = re.match(r"\w*[_=]", words)
    return re.sub(r"(?<![\w])-(?=\d)", "−", words if name else words[:1].upper() + words[1:])
