"""Number formatting for pages: as many digits as the interval supports, with a typographic minus sign."""

from __future__ import annotations

import math
import re

from messirl._formatting import decimals, format_nats, percentage
from messirl.paper.experiments.curves import Interval

MOST = 5  # decimals
MOST_SMALL = 9  # decimals of a number that is the same in every run
ROUNDING = 1e-9  # smaller differences count as zero


def fixed(value: float, places: int, *, signed: bool = False) -> str:
    """Format with fixed decimals; zero has no sign, NaN is "undefined", infinity is ∞."""
    if math.isnan(value):
        return "undefined"
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    text = f"{value:+.{places}f}" if signed else f"{value:.{places}f}"
    if float(text) == 0:
        text = text.lstrip("+-")
    return text.replace("-", "−")


def score(value: float, places: int = 4, *, signed: bool = False) -> str:
    """Format with fixed decimals, but with more where a nonzero value would round to zero."""
    if not math.isfinite(value):
        return fixed(value, places)
    return format_nats(value, places, signed=signed).replace("-", "−")


def share(value: float, places: int = 2) -> str:
    """Format a share as a percentage; a small nonzero share is written as "< …", not as zero."""
    return percentage(value, places).replace("%", " %").replace("<", "< ")


def mean_and_interval(found: Interval, *, signed: bool = False) -> tuple[str, str]:
    """Format the mean and its 95 % interval in brackets; a single run has no interval."""
    half = (found.high - found.low) / 2
    if not math.isfinite(half):
        return fixed(found.mean, 4, signed=signed), "one run: no interval"
    if half <= 1e-6 * abs(found.mean):
        if abs(found.mean) < ROUNDING:
            return "0", "in every run"
        places = 4  # a nonzero value should not look like zero
        while places < MOST_SMALL and not float(f"{found.mean:.{places}f}"):
            places += 1
        return fixed(found.mean, places, signed=signed), "in every run"
    places = decimals(half)
    for end in (found.low, found.high):  # a nonzero end should not look like zero
        while places < MOST and end != 0 and round(end, places) == 0:
            places += 1
    low, high = fixed(found.low, places), fixed(found.high, places)
    return fixed(found.mean, places, signed=signed), f"[{low}, {high}]"


def plain(value: float) -> str:
    """Format a setting with no more digits than it was given with."""
    return f"{value:g}".replace("-", "−")


def rounded(value: float | None, digits: int = 4) -> str:
    """Format with significant digits; a missing value is a dash, NaN is "undefined", infinity is ∞."""
    if value is None:
        return "–"
    if not math.isfinite(value):
        return fixed(value, 0)
    return "0" if value == 0 else f"{value:#.{digits}g}".rstrip(".").replace("-", "−")


def count_with_noun(n: int, what: str) -> str:
    """Return a count with its noun: `1 state`, `2,000 states`."""
    return f"{n:,} {what}{'s' if n != 1 else ''}"


def as_sentence(words: str) -> str:
    """Return a sentence for a page: capitalised, unless it begins with an identifier, with typographic minus signs."""
    name = re.match(r"\w*[_=]", words)
    return re.sub(r"(?<![\w])-(?=\d)", "−", words if name else words[:1].upper() + words[1:])
