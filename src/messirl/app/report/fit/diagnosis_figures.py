"""Figures of a diagnosis: agreement with the expert policy, shares of the penalty, influence and shrinkage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from messirl._formatting import whole_per_cent
from messirl._types import Floats, Ints
from messirl.app.report.common.axes import BLUE, INK, bars, name_bars, panels
from messirl.app.report.common.feature_labels import shorten
from messirl.app.report.common.interval_plot import SMALL
from messirl.app.report.common.method_style import WIDTH
from messirl.app.report.fit.fit_figures import MANY
from messirl.app.workflow.narrative import plain_names
from messirl.app.workflow.record import DiagnosisRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

UNLIKE = "#E69F00"  # below zero; BLUE is above
BARS = 15  # bars in the figure of influence
DIRECTIONS, FEATURES = 6, 6  # panels, and bars in each
DOTS = 20_000  # per figure at most
NAMED = 4  # labelled dots
LEAST_SHRUNK = 0.01  # directions that are shrunk less are not drawn
EDGE = 0.01  # fraction of trajectories on either side that may be drawn at the edge
AGREEMENT = "agreement with the expert policy (nats per step)"


def agreement_figure(record: DiagnosisRecord) -> Figure | None:
    """Draw a histogram of the agreement of unlabelled trajectories with the expert policy."""
    values = record.diagnosis.agreement_with_experts.unlabelled
    if not np.isfinite(values).any():
        return None
    low, high = agreement_limits(record)
    width = (high - low) / np.clip(2 * np.sqrt(values.size), 10, 40)
    bins = width * np.arange(np.floor(low / width), np.ceil(high / width) + 1)  # zero is an edge between bars
    low, high = float(bins[0]), float(bins[-1])
    shown = np.clip(values, low, high)
    figure, ax = panels(3.7, 2.3)
    parts = [shown[values <= 0.0], shown[values > 0.0]]
    ax.hist(parts, bins=bins.tolist(), stacked=True, color=[UNLIKE, BLUE], edgecolor="white", linewidth=0.5)
    ax.axvline(0.0, color=INK, linewidth=0.9)
    _experts(ax, record)
    ax.set_xlim(low, high)
    ax.set_xlabel(AGREEMENT)
    ax.set_ylabel("trajectories")
    return figure


def share_figure(record: DiagnosisRecord) -> Figure | None:
    """Draw the share of the penalty against agreement with the expert policy."""
    found = record.diagnosis
    values = found.agreement_with_experts.unlabelled
    if not np.isfinite(values).any() or not found.share.any():
        return None
    low, high = agreement_limits(record)
    x, y = np.clip(values, low, high), 100.0 * found.share
    figure, ax = panels(WIDTH * 0.8, 2.6)
    ax.axvline(0.0, color=INK, linewidth=0.9)
    _experts(ax, record)
    some = _dots(found.share)
    ax.scatter(
        x[some],
        y[some],
        s=float(np.clip(2500.0 / values.size, 6.0, 22.0)),
        c=[BLUE if v > 0 else UNLIKE for v in values[some]],
        alpha=0.8,
        linewidths=0,
        zorder=3,
        rasterized=values.size > MANY,
        clip_on=False,
    )
    for j in _apart(np.argsort(-found.share, kind="stable")[: 2 * NAMED], x / (high - low), y / y.max())[:NAMED]:
        left = x[j] > 0.5 * (low + high)
        ax.annotate(
            shorten(record.ids[j], 16),
            (x[j], y[j]),
            (-4 if left else 4, 0),
            textcoords="offset points",
            ha="right" if left else "left",
            va="center",
            fontsize=6.5,
        )
    ax.set_xlim(low, high)
    ax.set_ylim(0.0, 1.08 * float(y.max()))
    ax.set_xlabel(AGREEMENT)
    ax.set_ylabel("share of the penalty (%)")
    return figure


def influence_figure(record: DiagnosisRecord) -> Figure | None:
    """Draw bars of the trajectories with the largest influence on θ."""
    order = record.most_influential[:BARS]
    if not order.size or record.diagnosis.influence is None:
        return None
    from matplotlib.patches import Patch

    alike = record.diagnosis.agreement_with_experts.alike[order]
    figure, ax = panels(SMALL, 0.85 + 0.16 * max(len(order), 3))
    ax.barh(np.arange(len(order)), record.diagnosis.influence[order], color=np.where(alike, BLUE, UNLIKE), height=0.68)
    name_bars(ax, [shorten(record.ids[j], 28) for j in order])
    kinds = [Patch(color=BLUE, label="agrees with the expert policy"), Patch(color=UNLIKE, label="does not")]
    figure.legend(handles=kinds, loc="outside upper right", ncols=2, handlelength=1.0)
    ax.locator_params(axis="x", nbins=5)
    ax.set_xlabel("influence: how far θ moves without the trajectory")
    return figure


def directions_figure(record: DiagnosisRecord) -> Figure | None:
    """Draw the directions that the penalty shrinks most, each as signed bars of its largest weights."""
    found = [d for d in record.diagnosis.directions if d.shrinkage > LEAST_SHRUNK][:DIRECTIONS]
    if not found:
        return None
    columns = min(len(found), 2)
    lines = -(-len(found) // columns)
    names, most = plain_names(record.features), min(FEATURES, len(record.features))
    figure, grid = panels(WIDTH, lines * (0.5 + 0.15 * most) + 0.3, lines, columns, squeeze=False, sharex=True)
    every = grid.ravel()
    for ax, direction in zip(every, found, strict=False):
        parts = direction.largest(names, most)
        weights = [weight for _, weight in parts]
        bars(ax, np.array(weights), np.full(most, True))
        ax.axvline(0.0, color=INK, linewidth=0.6)
        name_bars(ax, [shorten(name, 26) for name, _ in parts])
        ax.set_xlim(-1.05, 1.05)
        ax.set_xticks([-1.0, -0.5, 0.0, 0.5, 1.0])
        ax.set_title(f"shrunk by {whole_per_cent(direction.shrinkage)}", loc="left")
    for ax in every[len(found) :]:
        ax.set_visible(False)
    for ax in every[max(len(found) - columns, 0) : len(found)]:
        ax.tick_params(labelbottom=True)
        ax.set_xlabel("weight in the direction")
    return figure


def agreement_limits(record: DiagnosisRecord) -> tuple[float, float]:
    """Return limits of the axis of agreement that show nearly all trajectories, zero and the held-out experts."""
    values: Floats = record.diagnosis.agreement_with_experts.unlabelled
    finite = values[np.isfinite(values)]
    anchors = [0.0, record.diagnosis.agreement_with_experts.expert]
    low, high = np.quantile(finite, [EDGE, 1.0 - EDGE])
    middle = max(high, *anchors) - min(low, *anchors) or 1.0
    # Values only slightly outside are shown in place.
    low = finite.min() if finite.min() > low - 0.25 * middle else low
    high = finite.max() if finite.max() < high + 0.25 * middle else high
    low, high = min(float(low), *anchors), max(float(high), *anchors)
    margin = 0.04 * (high - low) or 0.1
    return low - margin, high + margin


def count_beyond_limits(record: DiagnosisRecord) -> int:
    """Return the number of trajectories far outside the limits, which are drawn at the edge."""
    low, high = agreement_limits(record)
    values = record.diagnosis.agreement_with_experts.unlabelled
    return int(((values < low) | (values > high)).sum())


def _dots(share: Floats) -> Ints:
    """Return the trajectories to draw: all or, of very many, those with large shares and a sample of the rest."""
    if share.size <= DOTS:
        return np.arange(share.size)
    order, half = np.argsort(-share, kind="stable"), DOTS // 2
    return np.concatenate([order[:half], order[half :: -(-(share.size - half) // half)]])


def _apart(order: Ints, x: Floats, y: Floats) -> list[int]:
    """Return the dots whose labels do not overlap the label of an earlier one."""
    kept: list[int] = []
    for j in order.tolist():
        if all(abs(x[j] - x[k]) > 0.12 or abs(y[j] - y[k]) > 0.06 for k in kept):
            kept.append(j)
    return kept


def _experts(ax: Axes, record: DiagnosisRecord) -> None:
    level = record.diagnosis.agreement_with_experts.expert
    ax.axvline(level, color=INK, linewidth=1.1, linestyle=(0, (4, 1.5)))
    ax.annotate(
        "held-out experts",
        (level, 1.0),
        (0, 2),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=7,
    )
