"""Figures with one or several panels, labelled bars, and the colours that all figures share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from messirl._types import Flags, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PIXELS = 115  # per inch, inside an SVG
BLUE, INK = "#0072B2", "#222222"
ADDS, TAKES = "#B35806", "#542788"  # the ends of the diverging colour map of maps


def panels(width: float, height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """Return a figure of this size in inches, and its panel or array of panels."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", dpi=PIXELS)
    return figure, figure.subplots(rows, columns, **options)


def bars(ax: Axes, sizes: Floats, settled: Flags) -> None:
    """Draw a bar for each value, from the top: orange above zero, purple below, hollow if not significant."""
    for place, (size, sure) in enumerate(zip(sizes, settled, strict=True)):
        colour = ADDS if size >= 0 else TAKES
        inside: Any = (colour, 0.55) if sure else "white"  # pale, so that intervals are visible on it
        ax.barh(place, size, height=0.6, facecolor=inside, edgecolor=colour, linewidth=0.9)


def name_bars(ax: Axes, names: list[str]) -> None:
    """Label each bar with a name, from the top."""
    ax.set_yticks(np.arange(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")
