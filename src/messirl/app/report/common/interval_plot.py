"""Dot plot of differences with their 95 % intervals, small enough for a phone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from messirl.app.report.common.axes import ADDS, BLUE, INK, name_bars, panels
from messirl.app.report.common.feature_labels import shorten
from messirl.inference.paired_gain import Gain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMALL = 3.7  # inches: the width at which labels are legible on a phone
OPEN = "#767676"  # no clear difference
BETTER = "◂ worse · better ▸ (nats per step)"
FAR = 4.0  # multiple of the median size; larger differences are written as numbers at the edge


def gains_figure(rows: Sequence[tuple[str, Gain]], label: str, bold: str | None = None) -> Figure | None:
    """Draw differences with 95 % intervals around zero: significantly better in blue, worse in orange, else hollow.

    bold : the name of the row to emphasise
    """
    known = [(name, gain) for name, gain in rows if np.isfinite(gain.mean)]
    if not known:
        return None
    figure, ax = panels(SMALL, 0.8 + 0.24 * max(len(known), 2))
    ax.axvline(0.0, color=INK, linewidth=0.9)
    low, high = _limits([gain for _, gain in known])
    for place, (_, gain) in enumerate(known):
        colour = OPEN if not gain.significant else BLUE if gain.mean > 0 else ADDS
        if not low <= gain.mean <= high:
            left = gain.mean < low
            words = f"◂ {gain.mean:.2g}" if left else f"{gain.mean:.2g} ▸"
            where: dict[str, Any] = {"ha": "left" if left else "right", "va": "center", "color": colour, "fontsize": 7}
            ax.text(low if left else high, place, words.replace("-", "−"), **where)
            continue
        if np.isfinite([gain.low, gain.high]).all():
            ends = np.clip([gain.low, gain.high], low, high)
            ax.plot(ends, [place, place], color=colour, linewidth=1.6, solid_capstyle="butt", zorder=2)
        inside = colour if gain.significant else "white"
        ax.plot([gain.mean], [place], "o", markersize=6, color=colour, markerfacecolor=inside, zorder=3)
    name_bars(ax, [shorten(name, 30) for name, _ in known])
    for tick, (name, _) in zip(ax.get_yticklabels(), known, strict=True):
        tick.set_fontweight("bold" if name == bold else "normal")
    ax.set_xlim(low, high)
    ax.set_ylim(len(known) - 0.4, -0.7)
    ax.locator_params(axis="x", nbins=5)
    ax.set_xlabel(label)
    return figure


def _limits(gains: Sequence[Gain]) -> tuple[float, float]:
    """Return axis limits that show zero and all differences with their intervals, except a few far outside."""
    size = np.array([abs(gain.mean) for gain in gains])
    near = [gain for gain in gains if abs(gain.mean) <= max(FAR * float(np.median(size)), 1e-9)]
    ends = [end for gain in near or gains for end in (gain.low, gain.mean, gain.high) if np.isfinite(end)]
    low, high = min(0.0, *ends), max(0.0, *ends)
    margin = 0.06 * (high - low or 1.0)
    return low - margin, high + margin
