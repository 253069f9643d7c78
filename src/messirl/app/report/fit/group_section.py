"""Results by group: a dot plot with intervals and a table for every quantity."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from messirl.app.report.common.axes import ADDS, BLUE, INK, name_bars, panels
from messirl.app.report.common.feature_labels import name_html, shorten
from messirl.app.report.common.html_page import draw_figure
from messirl.app.report.common.interval_plot import OPEN, SMALL
from messirl.app.report.common.markup import Html, row, table, tag
from messirl.app.report.common.number_format import as_sentence, rounded, score
from messirl.inference.group_breakdown import EFFECTS, FROM_ZERO, Breakdown, Group
from messirl.inference.paired_gain import Gain

if TYPE_CHECKING:
    from matplotlib.figure import Figure


UNITS = {
    "score": "log-probability per step (nats)\nfurther right is better predicted",
    "likeness": "agreement with the expert policy\n(nats per step better than chance)",
    "use": "◂ hurts · helps ▸\ngain of held-out experts (nats per step)",
    "gain": "◂ hurts · helps ▸\ngain (nats per step)",
}


def groups_section(found: list[Breakdown], folder: Path) -> list[Html]:
    """Return a figure and a table for every quantity that was broken down by a column."""
    out: list[Html] = []
    for one in found:
        out.append(tag("h3", f"{one.title}, by {shorten(one.column)}"))
        out.append(tag("p", f"{as_sentence(one.sentence)}."))
        caption = f"{one.title} by {shorten(one.column)}. {as_sentence(one.told)} {_tests(one)}"
        out += draw_figure(f"by_{one.measure}", partial(groups_figure, one), folder, caption, small=True)
        out.append(groups_table(one))
    return out


def groups_figure(found: Breakdown) -> Figure | None:
    """Draw a dot with its interval for every group, below one for all groups together if that is known."""
    rows = [*([] if found.whole is None else [found.whole]), *found.groups]
    values = np.array([[group.value.mean, group.value.low, group.value.high] for group in rows])
    if not np.isfinite(values[:, 0]).any():
        return None
    figure, ax = panels(SMALL, 0.75 + 0.21 * max(len(rows), 2))
    if found.measure != "score":
        ax.axvline(0.0, color=INK, linewidth=0.8)
    for place, (group, (mean, low, high)) in enumerate(zip(rows, values, strict=True)):
        sign = found.significant(group)
        colour = {1: BLUE, -1: ADDS, 0: OPEN}[sign]
        if np.isfinite([low, high]).all():
            ax.plot([low, high], [place, place], color=colour, linewidth=1.6, solid_capstyle="butt")
        if np.isfinite(mean):
            look = "D" if group is found.whole else "o"
            fill = colour if sign else "white"
            ax.plot([mean], [place], marker=look, markersize=5.5, color=colour, markerfacecolor=fill, zorder=3)
    name_bars(ax, [f"{shorten(group.name, 22)}  ({group.trajectories:,})" for group in rows])
    ax.locator_params(axis="x", nbins=5)
    ax.set_xlabel(UNITS[found.measure])
    return figure


def groups_table(found: Breakdown) -> Html:
    """Return the table of all groups."""
    zero, several = found.measure in FROM_ZERO, len(found.groups) > 1
    head = [shorten(found.column, 30), "trajectories", "steps", found.title.lower(), "95 % interval"]
    head += ["p"] if zero else []
    head += ["difference from other groups", "95 % interval", "p", ""] if several else []
    rows = []
    for group in [*found.groups, *([] if found.whole is None else [found.whole])]:
        cells = [f"{group.trajectories:,}", f"{group.steps:,}", *_value(group.value, signed=found.measure != "score")]
        cells += [_p(group.value_p)] if zero else []
        if several:
            cells += [*_value(group.difference, signed=True), _p(group.p), _word(found, group)]
        rows.append(row(name_html(group.name, 36), *cells))
    return table([row(*head, head=True)], rows, "fit numbers")


def _word(found: Breakdown, group: Group) -> str:
    """Return the significant result of a group in a word or two."""
    if found.measure in EFFECTS:
        return {1: "helps", -1: "hurts", 0: ""}[group.sign]
    return {1: "above other groups", -1: "below other groups", 0: ""}[group.side]


def _tests(found: Breakdown) -> str:
    """Describe the lines, and the test of `Breakdown.significant` that colours the dots."""
    against = "zero" if found.measure in FROM_ZERO else "the mean of the other groups"
    return (
        f"Lines are 95 % intervals of one group each. Dots are blue where a group is significantly above {against}, "
        "orange where significantly below, and hollow otherwise. The tests are at p < 0.05, with Holm’s correction for "
        "the number of groups."
    ) + ("" if found.whole is None else " The diamond is the mean of all groups together, a separate test.")


def _value(gain: Gain | None, *, signed: bool) -> tuple[str, str]:
    if gain is None:
        return "", ""
    known = math.isfinite(gain.low) and math.isfinite(gain.high)
    ends = f"[{score(gain.low)}, {score(gain.high)}]" if known else "–"
    return score(gain.mean, signed=signed), ends


def _p(value: float) -> str:
    return "" if math.isnan(value) else "< 0.001" if value < 0.001 else rounded(value, 2)
