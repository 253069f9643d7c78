"""Figures of one or several panels, bars with names, and the colours that mean the same in all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from messirl._types import Flags, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PIXELS = 115  # per inch, inside an SVG
BLUE, INK = "#0072B2", "#222222"
ADDS, TAKES = "#B35806", "#542788"  # the ends of the maps’ colours


def panels(width: float, height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """A figure of this size in inches, with one panel or with an array of them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", dpi=PIXELS)
    return figure, figure.subplots(rows, columns, **options)


def bars(ax: Axes, sizes: Floats, settled: Flags) -> None:
    """A bar for each, from the top: orange above zero, purple below; hollow where that is not settled."""
    for place, (size, sure) in enumerate(zip(sizes, settled, strict=True)):
        colour = ADDS if size >= 0 else TAKES
        inside: Any = (colour, 0.55) if sure else "white"  # pale, so that intervals are seen on it
        ax.barh(place, size, height=0.6, facecolor=inside, edgecolor=colour, linewidth=0.9)


def name_bars(ax: Axes, names: list[str]) -> None:
    """A name beside each bar, from the top."""
    ax.set_yticks(np.arange(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")
