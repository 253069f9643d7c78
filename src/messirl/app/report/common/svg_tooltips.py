"""Tooltips on figures: a transparent SVG overlay with titles, without scripts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from messirl._types import Floats
from messirl.app.report.common.markup import Html, join, tag

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 2000  # tooltips per figure
LEAST = 4.0  # points: smallest half-width of a hover area
MAP_CSS = """
figure .map { position: relative; min-width: 640px; }
figure.half .map { max-width: 620px; min-width: 520px; }
figure .map img { min-width: 0; max-width: none; }
figure .map svg { position: absolute; left: 0; top: 0; width: 100%; height: 100%; }
figure .map rect { fill: transparent; pointer-events: all; }
figure .map rect:hover { stroke: var(--ink); stroke-width: 1; vector-effect: non-scaling-stroke; }
@media (max-width: 720px) { figure .map { min-width: 860px; } figure.half .map { min-width: 620px; } }
@media print { figure .map, figure.half .map { min-width: 0; } }
"""


@dataclass(frozen=True)
class HoverArea:
    """A hover area, in fractions of the width and height from the upper left corner, and its tooltip."""

    x: float
    y: float
    width: float
    height: float
    text: str


def hover_areas(ax: Axes, at: Floats, said: Callable[[int], str], reach: float) -> list[HoverArea]:
    """Return one hover area per place (n, 2) of a map whose layout is done; none if there are too many places.

    said : returns the tooltip of place i
    reach : half-width of the area, in data units
    """
    figure = ax.get_figure()
    if len(at) > MOST or figure is None:
        return []
    centre, corner = (np.asarray(ax.transData.transform(points)) for points in (at, at + reach))
    least = LEAST * figure.dpi / 72
    half = np.maximum(np.abs(corner - centre), least)
    wide, high = figure.bbox.size
    low, size = (centre - half) / [wide, high], 2 * half / [wide, high]
    return [
        HoverArea(float(x), float(1.0 - y - dy), float(dx), float(dy), said(i))
        for i, ((x, y), (dx, dy)) in enumerate(zip(low, size, strict=True))
    ]


def add_tooltips(parts: list[Html], spots: list[HoverArea]) -> list[Html]:
    """Return the figure with an overlay of these hover areas."""
    if not spots or not parts:
        return parts
    shapes = [
        tag(
            "rect",
            tag("title", spot.text),
            **{name: f"{1000 * getattr(spot, name):.1f}" for name in ("x", "y", "width", "height")},
        )
        for spot in spots
    ]
    above = tag("svg", *shapes, viewBox="0 0 1000 1000", preserveAspectRatio="none")
    first, *rest = parts
    found = re.search(r"<img [^>]*>", first)
    assert found is not None, "a figure has a picture"
    both = tag("div", Html(found[0]), above, class_="map")
    return [join([Html(first[: found.start()]), both, Html(first[found.end() :])]), *rest]
