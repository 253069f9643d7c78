"""The pictures that stand beside a verdict: what experts want, and differences with their intervals.

They are small, so that their letters are legible on a telephone too; filled marks are settled, hollow ones are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from messirl._types import Floats
from messirl.evaluation.paired import Gain
from messirl.report.kit.axes import ADDS, BLUE, INK, bars, name_bars, panels
from messirl.report.kit.dots import SMALL
from messirl.report.kit.names import short
from messirl.workflow.ranking import ranked
from messirl.workflow.wants import spreads

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 12  # features
BINS = 24


def wants_figure(names: Sequence[str], model: Any, low: Floats, high: Floats) -> Figure | None:
    """What each feature contributes, the most first, with 95 % intervals; NaN ends are no interval.

    names : (d,) of the features; low, high : (d,) ends of the intervals of the weights
    """
    return contributions_figure(names, model.theta_, spreads(model), low, high)


def contributions_figure(
    names: Sequence[str], theta: Floats, spread: Floats, low: Floats, high: Floats
) -> Figure | None:
    """The same of weights (d,) of features that vary so much (d,)."""
    order = ranked(np.abs(theta) * spread)[:MOST]
    size, ends = (theta * spread)[order], (np.stack([low, high]) * spread)[:, order]
    if not np.isfinite(size).all() or not size.any():
        return None
    figure, ax = panels(SMALL, 0.75 + 0.2 * max(len(order), 3))
    place, known = np.arange(len(order)), np.isfinite(ends).all(axis=0)
    settled = (ends.min(axis=0) > 0) | (ends.max(axis=0) < 0) if known.any() else np.full(len(order), True)
    bars(ax, size, settled)
    if known.any():
        reach = np.abs(np.stack([size - ends[0], ends[1] - size]))[:, known]
        ax.errorbar(size[known], place[known], xerr=reach, fmt="none", ecolor=INK, elinewidth=0.9, capsize=1.8)
    ax.axvline(0.0, color=INK, linewidth=0.7)
    name_bars(ax, [short(names[j], 24) for j in order])
    ax.set_xlabel("avoided  ◂  contribution  ▸  wanted")
    return figure


def spread_figure(each: Floats, gain: Gain, label: str) -> Figure | None:
    """A histogram of differences, one per trajectory; the mean with its 95 % interval above it."""
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
