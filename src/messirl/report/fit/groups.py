"""What was found group by group: a picture of dots with intervals, and a table, for every quantity."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from messirl.evaluation.groups import Breakdown, Group
from messirl.evaluation.paired import Gain
from messirl.report.kit.axes import ADDS, BLUE, INK, name_bars, panels
from messirl.report.kit.digits import as_sentence, rounded, score
from messirl.report.kit.dots import OPEN, SMALL
from messirl.report.kit.markup import Html, row, table, tag
from messirl.report.kit.names import named, short
from messirl.report.kit.page import drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure


EFFECTS = ("use", "gain")  # zero means something: no effect
UNITS = {
    "score": "log-probability a step (nats)\nfurther right is better predicted",
    "likeness": "likeness (nats a step better explained\nby the experts than by chance)",
    "use": "◂ hurts · helps ▸\ngain of held-out experts (nats a step)",
    "gain": "◂ hurts · helps ▸\ngain (nats a step)",
}
TESTS = (
    "Lines are 95 % intervals of one group each, hollow dots those of which nothing is clear; p-values are corrected "
    "for the number of groups (Holm), and what is called clear has a corrected p below 0.05."
)


def groups_section(found: list[Breakdown], folder: Path) -> list[Html]:
    """Every quantity that was broken down by a column; nothing where none was."""
    out: list[Html] = []
    for one in found:
        out.append(tag("h3", f"{one.title}, by {short(one.column)}"))
        out.append(tag("p", f"{as_sentence(one.sentence)}."))
        caption = f"{one.title} by {short(one.column)}. {as_sentence(one.told)} {TESTS}"
        out += drawn(f"by_{one.measure}", partial(groups_figure, one), folder, caption, small=True)
        out.append(groups_table(one))
    return out


def groups_figure(found: Breakdown) -> Figure | None:
    """A dot with its interval for every group, below all of them together where that is known."""
    rows = [*([] if found.whole is None else [found.whole]), *found.groups]
    values = np.array([[group.value.mean, group.value.low, group.value.high] for group in rows])
    if not np.isfinite(values[:, 0]).any():
        return None
    figure, ax = panels(SMALL, 0.75 + 0.21 * max(len(rows), 2))
    if found.measure != "score":
        ax.axvline(0.0, color=INK, linewidth=0.8)
    for place, (group, (mean, low, high)) in enumerate(zip(rows, values, strict=True)):
        colour = _colour(found, group)
        if np.isfinite([low, high]).all():
            ax.plot([low, high], [place, place], color=colour, linewidth=1.6, solid_capstyle="butt")
        if np.isfinite(mean):
            look = "D" if group is found.whole else "o"
            clear = group.sign != 0 if found.measure in EFFECTS else group.apart
            fill = colour if clear else "white"
            ax.plot([mean], [place], marker=look, markersize=5.5, color=colour, markerfacecolor=fill, zorder=3)
    name_bars(ax, [f"{short(group.name, 22)}  ({group.trajectories:,})" for group in rows])
    ax.locator_params(axis="x", nbins=5)
    ax.set_xlabel(UNITS[found.measure])
    return figure


def groups_table(found: Breakdown) -> Html:
    """The numbers of every group."""
    zero, several = found.measure in EFFECTS, len(found.groups) > 1
    head = [short(found.column, 30), "trajectories", "steps", found.title.lower(), "95 % interval"]
    head += ["p"] if zero else []
    head += ["from the others", "95 % interval", "p", ""] if several else []
    rows = []
    for group in [*found.groups, *([] if found.whole is None else [found.whole])]:
        cells = [f"{group.trajectories:,}", f"{group.steps:,}", *_value(group.value, signed=found.measure != "score")]
        cells += [_p(group.value_p)] if zero else []
        if several:
            cells += [*_value(group.difference, signed=True), _p(group.p), _word(found, group)]
        rows.append(row(named(group.name, 36), *cells))
    return table([row(*head, head=True)], rows, "fit numbers")


def _word(found: Breakdown, group: Group) -> str:
    """What is clear about a group, in a word or two."""
    if found.measure in EFFECTS:
        return {1: "helps", -1: "hurts", 0: ""}[group.sign]
    if not group.apart or group.difference is None:
        return ""
    return "above the others" if group.difference.mean > 0 else "below the others"


def _colour(found: Breakdown, group: Group) -> str:
    """Blue for what is clearly good, orange for what is clearly not, grey else."""
    if found.measure in EFFECTS:
        sign = group.sign
    else:
        sign = 0 if not group.apart or group.difference is None else int(np.sign(group.difference.mean))
    return {1: BLUE, -1: ADDS, 0: OPEN}[sign]


def _value(gain: Gain | None, *, signed: bool) -> tuple[str, str]:
    if gain is None:
        return "", ""
    known = math.isfinite(gain.low) and math.isfinite(gain.high)
    ends = f"[{score(gain.low, signed=signed)}, {score(gain.high, signed=signed)}]" if known else "–"
    return score(gain.mean, signed=signed), ends


def _p(value: float) -> str:
    return "" if math.isnan(value) else "< 0.001" if value < 0.001 else rounded(value, 2)
