"""Maps of a fit: reward and expected visits, the policy, and the trajectories.

If all states lie on a line, curves take the place of maps, since arrows and dots would overlap.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from messirl import plot
from messirl._types import Floats, Ints
from messirl.app.report.common.axes import BLUE, INK, panels
from messirl.app.report.common.feature_labels import shorten
from messirl.app.report.common.map_style import CROWDED, opposite, tile_inks
from messirl.app.report.common.method_style import WIDTH
from messirl.app.report.common.number_format import rounded
from messirl.app.report.common.svg_tooltips import HoverArea
from messirl.app.report.fit.map_axes import BaseMap, widely_spread
from messirl.app.workflow.ranking import ranked
from messirl.app.workflow.record import FitRecord
from messirl.data.trajectories import Trajectories

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ARROWS = 20  # arrows per side of a map with too many states for an arrow along each transition
COLOURED = 4000  # transitions at most whose rewards are drawn
LEAST = 0.1  # least probability of a transition with an arrow
CURVES = 6  # actions drawn at most along a line of states
OTHERS = "#B35806"  # unlabelled trajectories
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def maps_figure(record: FitRecord, spots: list[HoverArea] | None = None) -> Figure | None:
    """Draw reward and expected visits, side by side or, if the map is wide, one above the other.

    spots : receives the tooltips of the states
    """
    if not record.states_on_map.size:
        return None
    if record.on_a_line:
        return _curves(record)
    base_map = BaseMap(record)
    figure, (left, right) = base_map.figure(2)
    base_map.moves(right)
    if colours_transitions(record):
        _draw_transition_rewards(base_map, left)
    else:
        base_map.moves(left)
        plot.reward(base_map.shown, base_map.at, left, **base_map.look)
    visits = base_map.shown.visitation_
    plot.visitation(base_map.shown, base_map.at, right, logarithmic=widely_spread(visits), **base_map.look)
    base_map.finish(left, "reward")
    base_map.finish(right, "expected visits")
    base_map.legend(figure)
    rewards, met = base_map.shown.state_rewards, np.nan_to_num(visits)

    def said(i: int) -> str:
        name = shorten(record.called("state", int(base_map.here[i])))
        return f"{name}: reward {rounded(float(rewards[i]), 3)}, visits {rounded(float(met[i]), 3)}"

    base_map.names(figure, [left, right], spots, [said, said])
    return figure


def tracks_figure(record: FitRecord, spots: list[HoverArea] | None = None) -> Figure | None:
    """Draw trajectories of the experts and, if there are any, unlabelled ones, slightly offset from each other."""
    some = {kind: tracks for kind, tracks in record.tracks.items() if len(tracks)}
    if not some or not record.states_on_map.size or record.on_a_line:
        return None
    from matplotlib.lines import Line2D

    base_map = BaseMap(record)
    figure, axes = base_map.figure(len(some))
    place = np.full(record.model.mdp_.n_states, -1)
    place[base_map.here] = np.arange(base_map.here.size)
    colours = {"expert": BLUE, "unlabelled": OTHERS}
    texts = [partial(_visits, record, base_map.here, tracks) for tracks in some.values()]
    for ax, (kind, tracks) in zip(axes, some.items(), strict=True):
        base_map.moves(ax)
        _plain_states(base_map, ax)
        _lines(base_map, ax, tracks, place, colours[kind])
        ax.set_aspect("equal")
        all_of = record.counts.get(kind, len(tracks))
        many = f"{len(tracks):,} of {all_of:,}" if all_of > len(tracks) else f"{len(tracks):,}"
        title = f"{many} {kind} {'trajectory' if all_of == 1 else 'trajectories'}"
        base_map.finish(ax, title, starts=kind == "expert")  # the fit takes the starts of the experts
    lines = [Line2D([], [], color=colours[kind], linewidth=1.2, label=kind) for kind in some]
    base_map.legend(figure, lines)
    base_map.names(figure, axes, spots, texts, lines=True)
    return figure


def policy_figure(record: FitRecord, spots: list[HoverArea] | None = None) -> Figure | None:
    """Draw the policy: an arrow along each likely transition or, with many states, the most likely one of some."""
    policy = record.policy
    if not record.states_on_map.size or policy is None:
        return None
    if record.on_a_line:
        return _probabilities(record, policy)
    base_map = BaseMap(record)
    figure, [ax] = base_map.figure(1)
    base_map.diameter = max(0.7 * base_map.diameter, 1.0)  # leave room for arrows
    base_map.moves(ax)
    plot.reward(base_map.shown, base_map.at, ax, **base_map.look)
    thinned = len(base_map.at) > ARROWS**2
    among = most_visited(base_map.at, base_map.shown.visitation_) if thinned else np.arange(len(base_map.at))
    moves = likely_transitions(base_map.shown.mdp_, base_map.at, policy[base_map.here], among, one=thinned)
    shapes = draw_arrows(base_map, ax, *moves, thinned=thinned)
    towards = record.towards
    ends = None if towards is None else np.flatnonzero(base_map.here == towards)
    base_map.finish(ax, "", ends=ends)
    base_map.legend(figure, ends=ends)
    base_map.names(figure, [ax], spots, [partial(_choices, record, policy, base_map.here)], shapes)
    return figure


def colours_transitions(record: FitRecord) -> bool:
    """Return whether the map shows rewards of transitions, not of states: if transitions are deterministic."""
    mdp = record.model.mdp_
    return mdp.state_action and mdp.deterministic and not record.on_a_line and mdp.transitions.nnz <= COLOURED


def _draw_transition_rewards(base_map: BaseMap, ax: Axes) -> None:
    """Draw the reward of each transition as the colour of the half of its line next to the state it leaves."""
    from matplotlib.collections import LineCollection

    mdp, at, rewards = base_map.shown.mdp_, base_map.at, base_map.shown.reward_
    moves = mdp.transitions.tocoo()
    state, action = np.divmod(moves.row, mdp.n_actions)
    value = rewards[state, action]
    kept = mdp.allowed[state, action] & (state != moves.col) & np.isfinite(value)
    begin, way = at[state[kept]], at[moves.col[kept]] - at[state[kept]]
    far = np.maximum(np.linalg.norm(way, axis=1, keepdims=True), 1e-300)
    beside = (
        0.06 * base_map.spacing * np.column_stack([way[:, 1], -way[:, 0]]) / far
    )  # both directions keep to the right
    lines = np.stack([begin + beside, begin + 0.5 * way + beside], axis=1)
    colours = plot.scale(value[kept])
    drawn = LineCollection(list(lines), linewidths=2.4, zorder=2, capstyle="butt", **colours)
    drawn.set_array(value[kept])
    ax.add_collection(drawn)
    rim = LineCollection(list(lines), linewidths=3.2, zorder=1.9, capstyle="butt", colors="#777777")
    ax.add_collection(rim)  # a rim, since the extreme colours are close to the background of a theme
    x, y = at.T
    ax.scatter(x, y, s=(0.8 * base_map.diameter) ** 2, color="white", edgecolors="0.3", linewidths=0.5, zorder=3)
    ax.set_aspect("equal")
    figure = ax.get_figure()
    assert figure is not None
    figure.colorbar(drawn, ax=ax, label="reward of a transition", shrink=0.85)


def most_visited(at: Floats, visits: Floats) -> Ints:
    """Return the most visited state in each of ARROWS × ARROWS parts of the map."""
    low, span = at.min(axis=0), np.maximum(np.ptp(at, axis=0), 1e-300)
    span = np.full(2, span.max())  # the parts are squares
    cell = np.minimum(((at - low) / span * ARROWS).astype(np.int64), ARROWS - 1)
    part = cell[:, 0] * ARROWS + cell[:, 1]
    rank = np.empty(len(at), dtype=np.int64)
    rank[ranked(np.nan_to_num(visits))] = np.arange(len(at))
    order = np.lexsort((rank, part))
    first = np.flatnonzero(np.diff(part[order], prepend=-1))
    return np.asarray(order[first])


def draw_arrows(base_map: BaseMap, ax: Axes, state: Ints, move: Floats, size: Floats, *, thinned: bool) -> Floats:
    """Draw arrows along transitions, longer and thicker with `size` (0 to 1), and rings for staying.

    thinned : the states are a few of many, and arrows may be longer than their transitions
    Returns the shapes of the arrows, (m, 7, 2).
    """
    from matplotlib.collections import PolyCollection

    far = np.linalg.norm(move, axis=1)
    going = far > 1e-9 * max(float(np.ptp(base_map.at, axis=0).max()), 1e-300)
    unit = plot.apart(base_map.at[np.unique(state)]) if thinned else base_map.spacing
    part = 0.38 if base_map.tiles else 0.47  # of a transition: the opposite direction has its own arrow
    reach = np.full(far.size, 0.95 * unit) if thinned else np.minimum(part * far, 0.95 * unit)
    inner = np.minimum(0.08 * unit if base_map.tiles else 0.2 * base_map.spacing, 0.4 * reach)
    long = inner + (reach - inner) * (0.35 + 0.65 * size)
    way = move / np.maximum(far, 1e-300)[:, None]
    width = np.minimum(unit * (0.03 + 0.065 * size), 0.3 * (long - inner))
    shapes = arrow_shapes(*(part[going] for part in (base_map.at[state], way, inner, long, width)))
    tiles = tile_inks(ax, base_map.at)
    inks = [INK if tiles is None else tiles[s] for s in state.tolist()]
    faces = [ink for ink, goes in zip(inks, going, strict=True) if goes]
    edges = "white" if tiles is None else [opposite(ink) for ink in faces]
    ax.add_collection(PolyCollection(list(shapes), facecolors=faces, edgecolors=edges, linewidths=0.25, zorder=5))
    stay = ~going
    if stay.any():
        area = (base_map.diameter + 3.0) ** 2 if not base_map.tiles else 30.0
        x, y = base_map.at[state[stay]].T
        rings = [ink for ink, goes in zip(inks, going, strict=True) if not goes]
        ax.scatter(x, y, s=area, facecolors="none", edgecolors=rings, linewidths=0.5 + 1.8 * size[stay], zorder=4.5)
    return shapes


def likely_transitions(mdp: Any, at: Floats, table: Floats, among: Ints, *, one: bool) -> tuple[Ints, Floats, Floats]:
    """Return transitions with a probability of at least 0.1: states (m,), directions (m, 2), probabilities (m,).

    Transitions to states in the same place are merged; those that leave the map are left out.

    one : only the most likely of each state
    """
    own, to, chance = mdp.next_states(among, table[among])
    state = among[own]
    move = at[to] - at[state]
    grain = 1e-6 * max(float(np.ptp(at, axis=0).max()), 1e-300)
    same = np.column_stack([state, np.round(move / grain)])
    _, first, group = np.unique(same, axis=0, return_index=True, return_inverse=True)
    together = np.zeros(first.size)
    np.add.at(together, group.ravel(), chance)
    state, move, chance = state[first], move[first], together
    kept = chance >= LEAST
    if one:
        order = np.lexsort((-chance, state))
        kept = np.zeros(state.size, dtype=bool)
        kept[order[np.flatnonzero(np.diff(state[order], prepend=-1))]] = True
    return state[kept], move[kept], chance[kept]


def arrow_shapes(at: Floats, way: Floats, begin: Floats, end: Floats, width: Floats) -> Floats:
    """Return arrows as polygons (m, 7, 2) along unit vectors `way`, from `begin` to `end`, with wider heads."""
    side = np.column_stack([-way[:, 1], way[:, 0]])
    neck = np.maximum(end - 1.9 * width, begin)
    along = np.stack([begin, neck, neck, end, neck, neck, begin], axis=1)
    beside = np.stack([-0.5, -0.5, -1.15, 0.0, 1.15, 0.5, 0.5])[None, :] * width[:, None]
    return np.asarray(at[:, None] + along[..., None] * way[:, None] + beside[..., None] * side[:, None])


def _visits(record: FitRecord, here: Ints, tracks: Trajectories, i: int) -> str:
    """Return the visits of the drawn trajectories to a state, as a tooltip."""
    s = int(here[i])
    return f"{shorten(record.called('state', s))}: {int((tracks.states == s).sum()):,} visits here"


def _choices(record: FitRecord, policy: Floats, here: Ints, i: int) -> str:
    """Return the most likely actions in a state, as a tooltip."""
    s = int(here[i])
    best = [a for a in ranked(policy[s])[:3] if policy[s, a] > 0]
    made = ", ".join(f"{shorten(record.called('action', int(a)), 20)} {policy[s, a]:.2f}" for a in best)
    return f"{shorten(record.called('state', s))}: {made or 'the end'}"


def _plain_states(base_map: BaseMap, ax: Axes) -> None:
    """Draw the states in grey, as the background of lines."""
    if len(base_map.at) > CROWDED:
        return
    if base_map.tiles:
        from matplotlib.collections import PolyCollection

        half = 0.5 * plot.apart(base_map.at)
        corners = half * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
        shapes = list(base_map.at[:, None] + corners)
        ax.add_collection(PolyCollection(shapes, facecolors="#F4F4F2", edgecolors="white", linewidths=0.6, zorder=1))
        ax.autoscale_view()
    else:
        x, y = base_map.at.T
        look: dict[str, Any] = {"color": "#E4E4E0", "edgecolors": "#A8A8A4", "linewidths": 0.4, "zorder": 2}
        ax.scatter(x, y, s=base_map.diameter**2, **look)


def _lines(base_map: BaseMap, ax: Axes, tracks: Trajectories, place: Ints, colour: str) -> None:
    """Draw a line for each trajectory, slightly offset from the others, with a dot at its start."""
    from matplotlib.collections import LineCollection

    n = len(tracks)
    turn, out = 2.4 * np.arange(n), np.sqrt((np.arange(n) + 0.5) / max(n, 1))
    beside = 0.2 * base_map.spacing * out[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    lines, first = [], []
    for i in range(n):
        path = place[tracks[i].states]
        path = path[path >= 0]
        if path.size:
            line = base_map.at[path] + (beside[i] if n > 1 else 0.0)
            lines.append(line)
            first.append(line[0])
    alpha = float(np.clip(18.0 / max(n, 1), 0.45, 0.8))
    ax.add_collection(LineCollection(lines, colors=colour, linewidths=0.7, alpha=alpha, zorder=3))
    if first:
        x, y = np.array(first).T
        ax.scatter(x, y, s=3.0, color=colour, linewidths=0.0, zorder=3.5)
    ax.autoscale_view()


def _line(record: FitRecord) -> tuple[Floats, Ints, str]:
    """Return coordinates along the line in order, the states there, and the axis of the line."""
    at = np.asarray(record.xy, dtype=np.float64)[record.states_on_map]
    axis = int(np.argmax(np.ptp(at, axis=0)))
    order = np.argsort(at[:, axis], kind="stable")
    return at[order, axis], record.states_on_map[order], "xy"[axis]


def _curves(record: FitRecord) -> Figure:
    """Draw reward and expected visits along a line of states."""
    where, states, axis = _line(record)
    figure, axes = panels(WIDTH, 3.4, 2, 1, sharex=True)
    rewards = plot.state_rewards(record.model)[states]
    for ax, values, name, colour in (
        (axes[0], rewards, "reward", OTHERS),
        (axes[1], record.model.visitation_[states], "expected visits", BLUE),
    ):
        known = np.isfinite(values)
        mark = "o" if states.size <= 120 else ""
        ax.plot(where[known], values[known], color=colour, linewidth=1.0, marker=mark, markersize=2.5)
        ax.set_ylabel(name)
    axes[1].set_xlabel(axis)
    return figure


def _probabilities(record: FitRecord, policy: Floats) -> Figure:
    """Draw the probability of each action along a line of states."""
    where, states, axis = _line(record)
    figure, ax = panels(WIDTH, 2.3)
    table = policy[states]
    for i, a in enumerate(ranked(table.sum(axis=0))[:CURVES]):
        label = shorten(record.called("action", int(a)), 24)
        ax.plot(where, table[:, a], color=COLOURS[i], linewidth=1.2, marker="o", markersize=2.2, label=label)
    ax.set_ylim(-0.03, 1.03)
    ax.set_xlabel(axis)
    ax.set_ylabel("probability")
    figure.legend(loc="outside upper right", ncols=CURVES, handlelength=1.6)
    return figure
