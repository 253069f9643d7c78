"""Figure of a model selection: the gain of each candidate over experts only, by its hyperparameter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from messirl._parameters import default
from messirl._types import Floats
from messirl.app.report.common.axes import BLUE, INK, panels
from messirl.app.report.common.feature_labels import shorten
from messirl.app.report.common.method_style import STYLES, WIDTH, MethodStyle
from messirl.app.workflow.record import SelectionRecord
from messirl.estimators.registry import METHODS
from messirl.selection import Candidate, Validation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OWN = {
    "RidgeStd": MethodStyle(f"experts only ({METHODS['RidgeStd'].label})", STYLES["RidgeStd"].colour, "s"),
    "MESSI": MethodStyle(METHODS["MESSI"].label, "#D55E00", "o"),
    "Complete": STYLES["Complete"],
    "ReferenceStd": MethodStyle(METHODS["ReferenceStd"].label, BLUE, "D"),
    "LightPoolingStd": MethodStyle(METHODS["LightPoolingStd"].label, "#009E73", "^"),
}
DEEPEST = 3.0  # depth of the axis below zero, in units of the largest gain
LEAST = 0.02  # nats: the limits are at least this far from zero
TICKS = 6  # with more hyperparameter values, every second one has a tick
APART = 0.025  # decades between the marks of methods at the same value


def gains_figure(record: SelectionRecord) -> Figure | None:
    """Draw gains with 95 % intervals, by λ0 and by the weight of pooling; losses beyond the limits are arrows.

    None if nothing was held out.
    """
    found, choice = record.validation, record.choice
    if found is None:
        return None
    gains = [found.gain(i, record.zero) for i in range(len(found.candidates))]
    gain, low, high = (np.array([getattr(one, name) for one in gains]) for name in ("mean", "low", "high"))
    bottom, top = _limits(gain[[c.method in OWN for c in found.candidates]])
    figure, (left, right) = panels(WIDTH, 3.1, columns=2, sharey=True)
    for ax, pooled in ((left, False), (right, True)):
        ax.axhline(0.0, color=INK, linewidth=0.9)
        paths = _paths(found, choice.index, pooled=pooled)
        for place, (label, look, rows) in enumerate(paths):
            value = np.array([_hyperparameter(found.candidates[i]) for i in rows])
            x = value * 10 ** (APART * (place - (len(paths) - 1) / 2))
            y, inside = gain[rows], gain[rows] >= bottom
            reach = np.nan_to_num(np.abs(np.stack([y - low[rows], high[rows] - y])))
            ax.errorbar(x[inside], y[inside], yerr=reach[:, inside], elinewidth=0.6, label=label, zorder=3, **look.line)
            ax.plot(x[~inside], np.full((~inside).sum(), bottom), "v", color=look.colour, zorder=4)
            if choice.index in rows:
                _mark(ax, float(x[rows.index(choice.index)]), max(float(gain[choice.index]), bottom))
        _scale(ax, sorted({_hyperparameter(found.candidates[i]) for *_, rows in paths for i in rows}))
        ax.set_ylim(bottom - 0.03 * (top - bottom), top)
    left.set_xlabel("λ0")
    left.set_ylabel(f"gain over {shorten(str(found.candidates[record.zero]), 26)}\n(nats per step)")
    right.set_xlabel("weight of an unlabelled trajectory")
    left.set_title(f"chosen: {shorten(str(choice.candidate), 60)}", loc="left", fontsize=7.5, fontweight="normal")
    figure.legend(loc="outside lower center", ncols=3, handlelength=2.4)
    return figure


def _hyperparameter(candidate: Candidate) -> float:
    """Return the hyperparameter on the axis: the weight of pooling, else λ0."""
    return candidate.weight or candidate.lambda0


def _paths(found: Validation, chosen: int, *, pooled: bool) -> list[tuple[str, MethodStyle, list[int]]]:
    """Return the lines of the figure: label, style and candidates by hyperparameter, per method and similarity.

    Prior policies are shown at the default strength, and at that of the chosen candidate.

    chosen : the index of the chosen candidate
    """
    out: dict[tuple[str, object, float | None], list[int]] = {}
    for i, c in enumerate(found.candidates):
        if c.method in OWN and _hyperparameter(c) > 0 and (c.weight > 0) == pooled:
            out.setdefault((c.method, c.similarity, c.strength), []).append(i)
    usual = (None, default("reference_strength"))
    paths = {key: rows for key, rows in out.items() if key[2] in usual or chosen in rows}
    several = len({similarity for _, similarity, _ in paths if similarity is not None}) > 1
    named = []
    for (method, similarity, strength), rows in paths.items():
        words = [OWN[method].label] + ([shorten(str(similarity), 24)] if several and similarity is not None else [])
        words += [] if strength in usual else [f"strength {strength:g}"]
        named.append((", ".join(words), OWN[method], rows))
    return named


def _limits(gain: Floats) -> tuple[float, float]:
    """Return axis limits that show all gains, and losses up to a multiple of the largest gain."""
    seen = gain[np.isfinite(gain)]
    top = 2.0 * max(float(seen.max(initial=0.0)), LEAST)
    return min(max(float(seen.min(initial=0.0)), -DEEPEST * top), -0.25 * top), top


def _scale(ax: Axes, values: list[float]) -> None:
    """Make the x axis logarithmic, with a tick at every value or, if there are many, at every second one."""
    if not values:
        ax.set_visible(False)
        return
    ax.set_xscale("log")
    shown = values[:: 1 if len(values) <= TICKS else 2]
    ax.set_xticks(shown, [f"{x:g}" for x in shown])
    ax.minorticks_off()


def _mark(ax: Axes, x: float, y: float) -> None:
    """Draw a ring around the chosen candidate."""
    ax.plot([x], [y], "o", markersize=10, markerfacecolor="none", markeredgecolor=INK, markeredgewidth=1.1, zorder=5)
