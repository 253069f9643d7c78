"""The figure of a choice: what each candidate gains over λ0 = 0 on held-out experts, by its strength."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from messirl._types import Floats
from messirl.estimators.methods import METHODS
from messirl.report.fit.figures import BLUE, INK, panels
from messirl.report.kit.names import short
from messirl.report.kit.style import LOOKS, WIDTH, Look
from messirl.selection import Validation
from messirl.workflow.record import SelectionRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OWN = {
    "MESSI": Look(METHODS["MESSI"].label, "#D55E00", "o"),
    "Screened": Look(METHODS["Screened"].label, BLUE, "s"),
    "Ridge": LOOKS["Ridge"],
    "RidgeStd": LOOKS["RidgeStd"],
    "Complete": LOOKS["Complete"],
}
DEEPEST = 3.0  # the axis reaches this far below zero, in units of the largest gain
LEAST = 0.02  # nats: the limits are at least this far from zero
APART = 0.025  # decades between the marks of methods with the same λ0


def gains_figure(record: SelectionRecord) -> Figure | None:
    """Gain ± one standard error; losses beyond the limits are arrows at the lower edge. None without any λ0."""
    found, choice = record.validation, record.choice
    if found is None or choice is None:
        return None
    gain, spread = found.gains()
    paths = _paths(found)
    if not paths:
        return None
    low, high = _gain_limits(gain, spread)
    figure, ax = panels(WIDTH * 0.9, 3.1)
    ax.axhline(0.0, color=INK, linewidth=0.9)
    for place, (label, look, rows) in enumerate(paths):
        x = np.array([found.candidates[i].lambda0 for i in rows]) * 10 ** (APART * (place - (len(paths) - 1) / 2))
        y, error = gain[rows], spread[rows]
        inside = y >= low
        ax.errorbar(x[inside], y[inside], yerr=error[inside], elinewidth=0.6, label=label, zorder=3, **look.line)
        ax.plot(x[~inside], np.full((~inside).sum(), low), linestyle="none", marker="v", color=look.colour, zorder=4)
        if choice.index in rows:
            _mark(ax, float(x[rows.index(choice.index)]), float(gain[choice.index]))
    _pooling(ax, found, gain, low, chosen=choice.index)
    strengths = sorted({c.lambda0 for c in found.candidates if c.lambda0 > 0})
    ax.set_xscale("log")
    ax.set_xticks(strengths, [f"{x:g}" for x in strengths])
    ax.minorticks_off()
    ax.set_ylim(low - 0.03 * (high - low), high)
    ax.set_xlabel("λ0")
    ax.set_ylabel("gain over λ0 = 0 (nats a step)")
    chosen = "λ0 = 0, the zero line" if choice.index == 0 else short(str(choice.candidate), 60)
    ax.set_title(f"chosen: {chosen}", loc="left", fontsize=7.5, fontweight="normal")
    handles, labels = ax.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda i: labels[i].startswith(LOOKS["Pooling"].label))
    figure.legend([handles[i] for i in order], [labels[i] for i in order], loc="outside right upper", handlelength=2.4)
    return figure


def _paths(found: Validation) -> list[tuple[str, Look, list[int]]]:
    """Each method with each of its similarities, by falling λ0."""
    out: dict[tuple[str, object], list[int]] = {}
    for i, c in enumerate(found.candidates):
        if c.method in OWN and c.lambda0 > 0:
            out.setdefault((c.method, c.similarity), []).append(i)
    several = len({similarity for _, similarity in out if similarity is not None}) > 1
    return [
        (OWN[method].label + (f", {short(str(similarity), 24)}" if several and similarity else ""), OWN[method], rows)
        for (method, similarity), rows in out.items()
    ]


def _gain_limits(gain: Floats, spread: Floats) -> tuple[float, float]:
    """Limits of the axis: all gains, and losses up to a multiple of the largest gain."""
    seen = np.isfinite(gain)
    high = max(float((gain + spread)[seen].max()), LEAST)
    low = max(float((gain - spread)[seen].min()), -DEEPEST * high)
    low = min(low, -0.25 * high)
    return low, high + 0.08 * (high - low)


def _mark(ax: Axes, x: float, y: float) -> None:
    """Draw a ring around the chosen candidate."""
    ax.plot([x], [y], "o", markersize=10, markerfacecolor="none", markeredgecolor=INK, markeredgewidth=1.1, zorder=5)


def _pooling(ax: Axes, found: Validation, gain: Floats, low: float, *, chosen: int) -> None:
    """Draw pooling as a horizontal line, since it has no λ0."""
    for i, c in enumerate(found.candidates):
        if c.method == "Pooling":
            look = LOOKS["Pooling"]
            below = gain[i] < low
            label = f"{look.label}{' (below)' if below else ''}"
            width = 1.6 if i == chosen else look.width
            ax.axhline(max(float(gain[i]), low), color=look.colour, linewidth=width, linestyle=(0, (1, 1)), label=label)
