"""Figures beside a verdict: preferences of the experts, and differences with their intervals.

They are small enough to be legible on a phone. Filled marks are significant, hollow ones are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from messirl._types import Floats
from messirl.app.report.common.axes import ADDS, BLUE, INK, bars, name_bars, panels
from messirl.app.report.common.feature_labels import shorten
from messirl.app.report.common.html_page import draw_figure
from messirl.app.report.common.interval_plot import SMALL
from messirl.app.report.common.markup import Html
from messirl.app.workflow.narrative import feature_names
from messirl.app.workflow.preferences import Preferences, spreads
from messirl.app.workflow.ranking import ranked
from messirl.inference.paired_gain import Gain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 12  # features
BINS = 24


def preferences_picture(found: Preferences | None, folder: Path) -> list[Html]:
    """Return the figure of the experts' preferences with its caption."""
    if found is None or found.table is None:
        return []
    caption = "Preferences of the experts. The contribution of each feature, with 95 % intervals."
    if found.refitted:
        caption += (
            " Weights and intervals are those of a fit to the experts only, without the penalty. A normal prior with "
            "a standard deviation of 10 keeps these weights finite."
        )
    caption += " The intervals of hollow bars include zero."
    make = partial(preferences_figure, found)
    return draw_figure("preferences", make, folder, caption, small=True)


def preferences_figure(found: Preferences) -> Figure | None:
    """Draw the contribution of each feature, the largest first, with 95 % intervals."""
    figure = contributions_figure(
        feature_names(found.model.mdp_), found.model.theta_, spreads(found.model), *found.ends
    )
    if figure is not None:
        figure.axes[0].set_xlabel("avoided  ◂  contribution  ▸  preferred")
    return figure


def contributions_figure(
    names: Sequence[str], theta: Floats, spread: Floats, low: Floats, high: Floats
) -> Figure | None:
    """Draw weights (d,) times the spreads (d,) of their features, the largest first; NaN ends mean no interval."""
    order = ranked(np.abs(theta) * spread)[:MOST]
    size, ends = (theta * spread)[order], (np.stack([low, high]) * spread)[:, order]
    if not np.isfinite(size).all() or not size.any():
        return None
    figure, ax = panels(SMALL, 0.75 + 0.2 * max(len(order), 3))
    place, known = np.arange(len(order)), np.isfinite(ends).all(axis=0)
    significant = (ends.min(axis=0) > 0) | (ends.max(axis=0) < 0) if known.any() else np.full(len(order), True)
    bars(ax, size, significant)
    if known.any():
        reach = np.abs(np.stack([size - ends[0], ends[1] - size]))[:, known]
        ax.errorbar(size[known], place[known], xerr=reach, fmt="none", ecolor=INK, elinewidth=0.9, capsize=1.8)
    ax.axvline(0.0, color=INK, linewidth=0.7)
    name_bars(ax, [shorten(names[j], 24) for j in order])
    ax.set_xlabel("contribution to the reward")
    return figure


def spread_figure(each: Floats, gain: Gain, label: str) -> Figure | None:
    """Draw a histogram of differences, one per trajectory, below their mean with its 95 % interval."""
    finite = each[np.isfinite(each)]
    if finite.size < 2:
        return None
    figure, ax = panels(SMALL, 2.2)
    low, high = min(float(finite.min()), 0.0), max(float(finite.max()), 0.0)
    width = (high - low or 1.0) / min(BINS, 4 + finite.size // 4)
    bins = width * np.arange(np.floor(low / width), np.ceil(high / width) + 1)  # zero is an edge between bars
    parts = [finite[finite < 0], finite[finite >= 0]]
    ax.hist(parts, bins=bins.tolist(), stacked=True, color=[ADDS, BLUE], edgecolor="white", linewidth=0.5, alpha=0.75)
    ax.axvline(0.0, color=INK, linewidth=0.9)
    top = 1.12 * ax.get_ylim()[1]
    if np.isfinite([gain.mean, gain.low, gain.high]).all():
        ax.errorbar(
            [gain.mean], [top / 1.06], xerr=[[gain.mean - gain.low], [gain.high - gain.mean]], fmt="o", color=INK
        )
    ax.set_ylim(0.0, top)
    ax.set_xlabel(label)
    ax.set_ylabel("trajectories")
    return figure
