"""Figures of one fit: weights, scores of the method and its baselines, convergence."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from messirl import plot
from messirl._types import Floats
from messirl.app.report.common.axes import BLUE, INK, bars, name_bars, panels
from messirl.app.report.common.feature_labels import shorten
from messirl.app.report.common.html_page import draw_figure
from messirl.app.report.common.interval_plot import SMALL
from messirl.app.report.common.markup import Html
from messirl.app.report.common.number_format import count_with_noun, rounded, score
from messirl.app.workflow.narrative import feature_names
from messirl.app.workflow.ranking import ALIKE
from messirl.app.workflow.record import FitRecord, Score

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from messirl.app.workflow.fit_recordings import RecordingsRecord

MOST_FEATURES = 40
MANY = 1000  # states, transitions or dots above which they are rasterised
HELD_OUT: dict[str, Any] = {"marker": "o", "markersize": 5.5}
EXPERT: dict[str, Any] = {"marker": "D", "markersize": 4.0, "markerfacecolor": "white"}


def weights_figure(record: FitRecord) -> Figure:
    """Draw θ as bars, the largest on top, with 95 % intervals where they are known."""
    order = record.by_size[:MOST_FEATURES]
    theta, half = record.model.theta_[order], record.half_widths()[order]
    figure, ax = panels(SMALL, 0.7 + 0.17 * max(len(order), 3))
    place = np.arange(len(order))
    known = np.isfinite(half)
    bars(ax, theta, ~known | (np.abs(theta) > np.nan_to_num(half)))
    if known.any():
        ax.errorbar(theta[known], place[known], xerr=half[known], fmt="none", ecolor=INK, elinewidth=0.9, capsize=1.8)
    ax.axvline(0.0, color=INK, linewidth=0.6)
    names = feature_names(record.model.mdp_)
    name_bars(ax, [shorten(names[j], 24) for j in order])
    ax.locator_params(axis="x", nbins=6)
    ax.set_xlabel("weight θ: what one unit of the feature\nadds to the reward")
    return figure


def scores_figure(scores: list[Score]) -> Figure | None:
    """Draw log-probabilities per step: filled dots for held-out trajectories, hollow ones for the experts."""
    values = _values(scores)
    if np.isfinite(values).sum() < 2:
        return None
    low, high = score_limits(values)
    figure, ax = panels(SMALL, 1.1 + 0.2 * len(scores))
    for place, (held_out, expert) in enumerate(values):
        colour = BLUE if place == 0 else INK
        _dot(ax, expert, place, low, markeredgecolor=colour, **EXPERT)
        _dot(ax, held_out, place, low, color=colour, **HELD_OUT)
        beyond = [f"{rounded(v)}{of}" for v, of in ((held_out, ""), (expert, " (expert)")) if v < low]
        if beyond:
            words = f"◂ {', '.join(beyond)}"
            ax.annotate(words, (low, place), (3, 0), textcoords="offset points", va="center", fontsize=7)
    ax.set_yticks(range(len(scores)), [shorten(s.name, 26) for s in scores])
    ax.get_yticklabels()[0].set_fontweight("bold")
    ax.set_ylim(len(scores) - 0.5, -0.6)
    ax.set_xlim(low, high)
    ax.tick_params(axis="y", length=0)
    ax.locator_params(axis="x", nbins=5)
    ax.set_xlabel("log-probability (nats per step)\nfurther right is better")
    _score_legend(figure, values)
    return figure


def far_below(scores: list[Score]) -> bool:
    """Return whether a score is too low for the axis, so that it is only written at the left edge."""
    values = _values(scores)
    return bool(np.isfinite(values).any() and (values < score_limits(values)[0]).any())


def score_limits(values: Floats) -> tuple[float, float]:
    """Return axis limits that show how most methods differ."""
    finite = values[np.isfinite(values)]
    best, middle, worst = float(finite.max()), float(np.median(finite)), float(finite.min())
    alike = ALIKE * max(abs(best), abs(worst))
    if best - worst > 6.0 * (best - middle) and best - middle > alike:
        worst = float(finite[finite >= best - 4.0 * (best - middle)].min())
    margin = 0.08 * (best - worst) if best - worst > alike else 0.05 * abs(best) or 0.1
    return worst - margin, best + margin


def convergence(record: FitRecord | RecordingsRecord, folder: Path) -> list[Html]:
    """Return the figure of the optimisation, with its end in the caption."""
    model = record.model
    caption = (
        f"Convergence. The objective ends at {score(model.objective_)} after "
        f"{count_with_noun(model.n_iter_, 'iteration')}: "
        f"{model.termination_}."
    )
    return draw_figure("convergence", partial(history_figure, record), folder, caption, small=True)


def history_figure(record: FitRecord | RecordingsRecord) -> Figure:
    """Draw the objective and the projected gradient over the iterations."""
    figure, ax = panels(SMALL, 1.9)
    plot.history(record.model, ax)
    other = figure.axes[-1]
    other.grid(False)
    other.yaxis.set_major_formatter("{x:g}")
    other.minorticks_off()
    other.spines["right"].set_visible(True)
    if len(record.model.history_) == 1:
        for axes in (ax, other):
            axes.lines[0].set_marker("o")
    return figure


def _values(scores: list[Score]) -> Floats:
    """Return the held-out and the expert score of each method, (n, 2); NaN if missing."""
    both = [[s.held_out, s.expert] for s in scores]
    return np.array([[np.nan if v is None else float(v) for v in pair] for pair in both])


def _dot(ax: Axes, value: float, place: int, low: float, **look: Any) -> None:
    """Draw a dot unless it is below the axis."""
    if value >= low:
        ax.plot([value], [place], linestyle="none", zorder=3, **look)


def _score_legend(figure: Figure, values: Floats) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="none", label=label, markeredgecolor=INK, **look)
        for label, look, column in zip(
            ("held out", "expert"), ({**HELD_OUT, "markerfacecolor": INK}, EXPERT), values.T, strict=True
        )
        if not np.isnan(column).all()
    ]
    figure.legend(handles=handles, loc="outside upper right", ncols=2, handlelength=1.0)
