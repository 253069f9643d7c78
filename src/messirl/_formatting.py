"""Formatting of numbers for a terminal: significant digits, columns aligned at the decimal point.

>>> format_significant([13.74, 0.5, -1.2e-7])
['13.7400   ', ' 0.5000   ', '-1.200e-07']
"""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LEAST, MOST = -4, 6  # powers of ten that are written without an exponent: 0.0001234 to 9999999
SPREAD = 4  # range of powers of ten within which all numbers of a column have the same number of decimals


def format_significant(values: Iterable[float], digits: int = 4) -> list[str]:
    """Return a column of numbers with at least `digits` significant digits each, of equal width, points aligned.

    Very small and very large numbers have an exponent. Only zero itself is written as 0.
    """
    column = [float(value) for value in values]
    powers = [_power(value, digits) for value in column]
    plain = [power for power in powers if power is not None and LEAST <= power <= MOST]
    least, most = min(plain, default=0), max(plain, default=0)
    texts = []
    for value, power in zip(column, powers, strict=True):
        if power is None:
            texts.append("0" if value == 0 else f"{value:g}")
        elif LEAST <= power <= MOST:
            texts.append(f"{value:.{max(digits - 1 - (least if most - least <= SPREAD else power), 0)}f}")
        else:
            texts.append(f"{value:.{digits - 1}e}")
    return _aligned(texts)


def format_nats(value: float, places: int = 4, *, signed: bool = False) -> str:
    """Return a score with `places` decimals; one that would round to zero has an exponent instead."""
    sign = "+" if signed else ""
    if not math.isfinite(value) or value == 0:
        return f"{abs(value) if value == 0 else value:.{places}f}"
    text = f"{value:{sign}.{places}f}"
    too_small, too_large = float(text) == 0, abs(value) >= 1e6
    return f"{value:{sign}.{1 if too_small else 3}e}" if too_small or too_large else text


def format_nats_interval(low: float, high: float) -> str:
    """Return the ends of an interval of a difference: `[-0.0012, +0.0034]`, or `[0.0012, 0.0034]` above zero."""
    return f"[{format_nats(low, signed=low <= 0)}, {format_nats(high, signed=low <= 0)}]"


def percentage(share: float, places: int = 2) -> str:
    """Return a share in per cent; one too small to show is written as `<0.01%`."""
    least = 10.0**-places
    if 0 < 100 * share < least / 2:
        return f"<{least:.{places}f}%"
    return f"{share:.{places}%}"


def whole_per_cent(share: float) -> str:
    """Return a share in whole per cent; one close to 0 or 1 is written as `< 1 %` or `> 99 %`."""
    if 0.0 < share < 0.005:
        return "< 1 %"
    return "> 99 %" if 0.995 <= share < 1.0 else f"{100.0 * share:.0f} %"


def decimals(half: float, most: int = 5) -> int:
    """Return the number of decimals, at most `most`, that shows two digits of half the width of an interval."""
    if not math.isfinite(half) or half <= 0:
        return 4
    return min(max(1 - math.floor(math.log10(half)), 0), most)


def format_p_value(value: float, places: int = 4) -> str:
    """Return a p-value as text; one too small to show is written as `<0.0001`."""
    least = 10.0**-places
    return f"<{least:.{places}f}" if 0 <= value < least else f"{value:.{places}f}"


def format_columns(names: Iterable[str], columns: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the lines of a table: names at the left, then right-aligned columns of at least 8 characters."""
    first = [" ".join(name.splitlines()) for name in names]
    lines = [f"{name:<{max(map(len, first))}}" for name in first]
    for head, below in columns.items():
        texts = [head, *below]
        wide = max(8, *map(len, texts))
        lines = [f"{line}  {text:>{wide}}" for line, text in zip(lines, texts, strict=True)]
    return lines


def _power(value: float, digits: int) -> int | None:
    """Return the power of ten of a number after rounding; None for zero and numbers that are not finite."""
    return int(f"{value:.{digits - 1}e}".partition("e")[2]) if math.isfinite(value) and value != 0 else None


def _aligned(texts: list[str]) -> list[str]:
    """Return the texts with their points aligned, as if every whole number ended in one; nan is put at the right."""
    if "nan" in texts:
        rest = iter(_aligned([text for text in texts if text != "nan"]) or ["nan"])
        wide = [text if text == "nan" else next(rest) for text in texts]
        return [f"{text:>{max(map(len, wide))}}" for text in wide]
    ends = [len(text.partition(".")[0]) for text in texts]
    before = max(ends, default=0)
    after = max((len(text) - end for text, end in zip(texts, ends, strict=True)), default=0)
    return [f"{'':{before - end}}{text:<{after + end}}" for text, end in zip(texts, ends, strict=True)]
