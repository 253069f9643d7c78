"""Prior policy of a fit and how the experts depart from it: two maps, and a table of the states that differ most."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from messirl import plot
from messirl._types import Floats, Ints
from messirl.app.report.common.feature_labels import name_html, shorten
from messirl.app.report.common.html_page import draw_figure
from messirl.app.report.common.markup import Html, join, row, table, tag
from messirl.app.report.common.number_format import count_with_noun, fixed, rounded, score
from messirl.app.report.common.svg_tooltips import HoverArea, add_tooltips
from messirl.app.report.fit.map_axes import BaseMap, widely_spread
from messirl.app.report.fit.maps import ARROWS, draw_arrows, most_visited
from messirl.app.report.fit.tables import step_words
from messirl.app.workflow.policy_change import PolicyChange
from messirl.app.workflow.record import FitRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_STATES = 15
SMALL = 0.2  # fraction of the largest change below which a state has no arrow


def prior_section(record: FitRecord, folder: Path, which: str) -> list[Html]:
    """Return the sentence, the figure and the table; an empty list if the fit has no prior policy.

    which : the step or the goal that the policy is shown for, in words
    """
    change = record.change
    if change is None:
        return []
    caption = (
        "Prior policy. The first map shows the prior policy π₀; its colours are the number of unlabelled choices in "
        f"each state, grey for none. The second shows how the experts’ policy π departs from it{which}; its colours "
        "are log π/π₀ of the action that rises most."
    )
    if not record.on_a_line:
        caption += (
            " Arrows in the first map point along the most likely action: the longer, the more likely. In the second "
            "they point along the action that rises most, where log π/π₀ is at least a fifth of its largest value."
        )
    if not record.on_a_line and record.states_on_map.size > ARROWS**2:
        caption += " Each part of the map has one arrow, from its most visited state."
    spots: list[HoverArea] = []
    return [
        tag("p", _sentence(change)),
        *add_tooltips(draw_figure("base", partial(prior_policy_figure, record, spots), folder, caption), spots),
        *_table(record, change, which),
    ]


def _sentence(change: PolicyChange) -> str:
    held_out = "" if change.held_out is None else f", and the held-out ones {score(change.held_out, 3)}"
    return (
        "The prior policy, without a learnt reward, gives the expert trajectories "
        f"{score(change.expert, 3)} nats per step{held_out}. The fitted policy departs from it by "
        f"{score(change.mean, 3)} nats per step: the KL divergence, averaged over its expected visits."
    )


def prior_policy_figure(record: FitRecord, spots: list[HoverArea] | None = None) -> Figure | None:
    """Draw the most likely action of the prior policy, and the action that the experts raise most.

    spots : receives the tooltips of the states
    """
    change = record.change
    if not record.states_on_map.size or change is None:
        return None
    base_map = BaseMap(record)
    at, here, shown = base_map.at, base_map.here, base_map.shown
    figure, (left, right) = base_map.figure(2)
    base_map.diameter = max(0.7 * base_map.diameter, 1.0)  # leave room for arrows
    for ax in (left, right):
        base_map.moves(ax)
    seen = change.others[here].astype(np.float64)
    known = np.where(seen > 0, seen, np.nan)
    plot.states(known, at, left, label="choices", logarithmic=widely_spread(seen), **base_map.look)
    raised = change.raised[here]
    rise = np.where(raised >= 0, np.take_along_axis(change.log_ratio[here], raised[:, None], 1)[:, 0], np.nan)
    plot.states(rise, at, right, label="log π/π₀", **base_map.look)
    base_map.finish(left, "prior policy")
    base_map.finish(right, "departure of the experts")
    base_map.legend(figure)
    if record.on_a_line:  # arrows would lie on the states
        return figure
    among = np.arange(len(at)) if len(at) <= ARROWS**2 else most_visited(at, shown.visitation_)
    usual, met = change.usual[here], np.isfinite(shown.visitation_)
    likely = np.where(usual >= 0, np.take_along_axis(change.base[here], usual[:, None], 1)[:, 0], 0.0)
    before = _arrows(base_map, usual, likely, among[seen[among] > 0], left)
    part = np.nan_to_num(rise) / max(float(rise[met].max(initial=0.0, where=np.isfinite(rise[met]))), 1e-300)
    after = _arrows(base_map, raised, part, among[met[among] & (part[among] > SMALL)], right)

    def chosen(i: int) -> str:
        return f"{shorten(record.called('state', int(here[i])))}: {count_with_noun(int(seen[i]), 'choice')}"

    def changed(i: int) -> str:
        name = shorten(record.called("state", int(here[i])))
        return f"{name}: log π/π₀ {rounded(float(rise[i]), 3)}" if np.isfinite(rise[i]) else f"{name}: no change"

    base_map.names(figure, [left, right], spots, [chosen, changed], [before, after])
    return figure


def _arrows(base_map: BaseMap, action: Ints, size: Floats, among: Ints, ax: Axes) -> Floats:
    """Draw arrows to the most likely next states of an action, as long as the `size` (0 to 1) of their states.

    Returns their shapes, (m, 7, 2).
    """
    among, mdp = among[action[among] >= 0], base_map.shown.mdp_
    own, to, chance = mdp.next_states(among, np.eye(mdp.n_actions)[action[among]])
    order = np.lexsort((-chance, own))
    likeliest = order[np.flatnonzero(np.diff(own[order], prepend=-1))]
    state, to = among[own[likeliest]], to[likeliest]
    if not state.size:
        return np.zeros((0, 7, 2))
    move = base_map.at[to] - base_map.at[state]
    return draw_arrows(base_map, ax, state, move, size[state], thinned=len(base_map.at) > ARROWS**2)


def _table(record: FitRecord, change: PolicyChange, which: str) -> list[Html]:
    """Return a table of the states in which the experts depart most from the prior policy."""
    rows = []
    for s in change.order[:MOST_STATES].tolist():
        if change.divergence[s] <= 0:
            continue
        a, b, u = int(change.raised[s]), int(change.policy[s].argmax()), int(change.usual[s])
        before, after = (fixed(float(p[s, a]), 2) for p in (change.base, change.policy))
        rows.append(
            row(
                name_html(record.called("state", s), 32),
                f"{int(change.others[s]):,}",
                f"{int(change.experts[s]):,}",
                step_words(record, s, u, float(change.base[s, u])),
                step_words(record, s, b, float(change.policy[s, b])),
                join([name_html(record.called("action", a), 24), f": {before} → {after}"]),
                score(float(change.log_ratio[s, a]), 2, signed=True),
                score(float(change.divergence[s]), 3),
            )
        )
    if not rows:
        return [tag("p", "The experts do not depart from the prior policy in any state.")]
    left_out = change.order.size - len(rows)
    lead = f"The states with the largest departure from the prior policy{which}, by expected visits × KL divergence"
    if left_out:
        lead += f" ({count_with_noun(left_out, 'further state')} not shown)"
    heads = (
        "state",
        "choices, unlabelled",
        "choices, experts",
        "prior policy π₀",
        "experts’ policy π",
        "action that rises most",
        "log π/π₀",
        "KL divergence",
    )
    return [tag("p", f"{lead}:"), table([row(*heads, head=True)], rows, "fit policy")]
