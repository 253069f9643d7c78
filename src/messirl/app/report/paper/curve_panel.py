"""One panel: mean curves with 95 % bands over runs, on axes that show where the methods differ.

The x axis is linear for iterations and ν, and logarithmic with a place for zero for u and λ0. The y axis is linear, or
logarithmic in the loss where the losses of a panel differ by more than a factor of five. Its limits follow the means;
bands and the first steps of a training may lie outside. Gains over MaxEnt-IRL have a linear axis around zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from messirl._types import Floats
from messirl.app.report.common.method_style import MethodStyle
from messirl.app.report.common.number_format import plain
from messirl.paper.experiments.curves import Curve, interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FACTOR = 5.0  # losses that differ by more are drawn on a logarithmic axis
SETTLED = 0.1  # fraction of the iterations, at the start, that may lie outside of the limits
WIDEST = 0.4  # fraction of the span of the means by which bands may widen the limits, on either side
DEEPEST = 2.0  # depth of the axis below zero if a gain is significant, in units of the largest gain
MARKS = 6


@dataclass(frozen=True)
class Line:
    """Mean and 95 % interval at every x, with a line style."""

    look: MethodStyle
    x: Floats
    mean: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class YRange:
    """Limits and scale of the y axis."""

    low: float
    high: float
    logarithmic: bool


def line(curve: Curve, look: MethodStyle) -> Line:
    """Return mean and interval of the curve of one method over its runs."""
    found = [interval(row) for row in curve.performance]
    mean, low, high = (np.array([getattr(f, name) for f in found]) for name in ("mean", "low", "high"))
    return Line(look, curve.x, mean, low, high)


def gain(curve: Curve, base: Curve) -> Curve | None:
    """Return the gain of a curve over `base`, run by run; None if their runs differ."""
    if curve.performance.shape[1] != base.performance.shape[1]:
        return None
    at = np.maximum(np.searchsorted(base.x, curve.x, side="right") - 1, 0)  # a training that ended keeps its last value
    return Curve(curve.x, curve.performance - base.performance[at], curve.theta_norm)


def y_range(lines: Sequence[Line], every_iteration: bool, gains: bool = False) -> YRange | None:
    """Return limits of y around the means; None if no mean is finite."""
    means, lows, highs = [], [], []
    for one in lines:
        seen = one.x >= SETTLED * one.x.max() if every_iteration else np.full(one.x.shape, True)
        means.append(one.mean[seen])
        lows.append(one.low[seen])
        highs.append(one.high[seen])
    middle = _finite(means)
    if not middle.size:
        return None
    least, most = float(middle.min()), float(middle.max())
    if gains:
        least, most = min(least, 0.0), max(most, 0.0)
        certain = float(_finite(lows).max(initial=0.0)) > 0  # then the axis zooms in on the gains
        least = max(least, -DEEPEST * most) if certain else least
    logarithmic = not gains and most < 0 and least < FACTOR * most
    if logarithmic:
        least, most = _to_log(least), _to_log(most)
        lows, highs = [_to_log(v) for v in lows], [_to_log(v) for v in highs]
    span = (most - least) or 0.2 * abs(most) or 1.0
    bottom = max(float(_finite(lows).min(initial=least)), least - WIDEST * span)
    top = min(float(_finite(highs).max(initial=most)), most + WIDEST * span)
    bottom, top = bottom - 0.06 * span, top + 0.06 * span
    return YRange(_from_log(bottom), _from_log(top), True) if logarithmic else YRange(bottom, top, False)


def draw(ax: Axes, lines: Sequence[Line], shown: YRange | None, every_iteration: bool) -> None:
    """Draw all lines above their bands, within the limits."""
    for order, one in enumerate(lines):
        look = one.look
        banded = np.isfinite(one.low) & np.isfinite(one.high)
        if banded.any() and not _covers(one, shown):
            low, high = one.low, one.high
            if shown is not None and shown.logarithmic:  # no logarithm of gains; that is outside anyway
                low, high = np.minimum(low, 0.1 * shown.high), np.minimum(high, 0.1 * shown.high)
            # Edges distinguish bands that overlap.
            edge: Any = {"edgecolor": (look.colour, 0.8), "linewidth": 0.45, "linestyle": look.dashes}
            ax.fill_between(one.x, low, high, where=banded.tolist(), facecolor=(look.colour, 0.1), **edge)
        n = len(one.x)
        # Markers of different lines are at different iterations, so that they do not overlap.
        marks: Any = (order * max(n // 40, 1), max(n // MARKS, 1)) if every_iteration and n > 1 else 1
        ax.plot(one.x, one.mean, markevery=marks, zorder=3 + look.width, **look.line)
    if shown is not None:
        _scale_y(ax, shown)


def scale_x(ax: Axes, points: Floats, logarithmic: bool) -> None:
    """Make the x axis linear, or logarithmic above the smallest positive point with a place for zero."""
    positive = points[points > 0]
    if not logarithmic or positive.size < 2:
        ax.xaxis.set_major_locator(_few_ticks())
        return
    least, most = float(positive.min()), float(points.max())
    ax.set_xscale("symlog", linthresh=least, linscale=0.45)
    decades = 10.0 ** np.arange(np.ceil(np.log10(least) - 1e-9), np.floor(np.log10(most) + 1e-9) + 1)
    zero = [0.0] if (points == 0).any() else []
    ticks = [*zero, *decades]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_xticks([], minor=True)
    side = 0.12 * least if zero else 0.0
    ax.set_xlim(-side if zero else least / 1.25, most * 1.25)


def _covers(one: Line, shown: YRange | None) -> bool:
    """Return whether a band would fill the whole panel."""
    return shown is not None and bool(np.all((one.low <= shown.low) & (one.high >= shown.high)))


def _scale_y(ax: Axes, shown: YRange) -> None:
    if not shown.logarithmic:
        ax.set_ylim(shown.low, shown.high)
        ax.yaxis.set_major_locator(_few_ticks())
        return
    ax.set_yscale("function", functions=(_to_log, _from_log))
    ax.set_ylim(shown.low, shown.high)
    powers = range(int(np.floor(np.log10(-shown.high))), int(np.ceil(np.log10(-shown.low))) + 1)
    ticks = [-d * 10.0**k for k in powers for d in (1, 2, 5) if shown.low <= -d * 10.0**k <= shown.high]
    ax.set_yticks(ticks, [plain(tick) for tick in ticks])
    ax.set_yticks([], minor=True)


def _few_ticks() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(5, steps=[1, 2, 2.5, 5, 10])


def _to_log(y: Any) -> Any:
    """Return −log10(−y), which increases for y < 0; other y become a large number."""
    return -np.log10(np.maximum(-np.asarray(y, dtype=np.float64), 1e-12))


def _from_log(t: Any) -> Any:
    return -(10.0 ** -np.asarray(t, dtype=np.float64))


def _finite(parts: Sequence[Floats]) -> Floats:
    every = np.concatenate([np.ravel(p) for p in parts])
    return np.asarray(every[np.isfinite(every)])
