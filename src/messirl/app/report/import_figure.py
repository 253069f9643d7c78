"""Figure of `messirl import`: recorded tracks, the cells they were mapped to, and the visits of each cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from messirl import plot
from messirl._types import Flags, Floats
from messirl.app.report.common.images import render
from messirl.app.report.common.map_style import write_names
from messirl.app.report.common.method_style import WIDTH
from messirl.app.workflow.importing import ImportRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_TRACKS, MOST_POINTS = 400, 200_000  # drawn at most
MOST_BARS = 25
MOST_MOVES = 5000  # transitions drawn at most, as lines between dots
LOG_FROM = 30  # ratio of visits above which the colour scale is logarithmic
TRACK = "#0072B2"


def draw_tracks(record: ImportRecord) -> bytes:
    """Return a PNG with two maps, or with bars if the places have no coordinates."""
    image = render("import", lambda: _figure(record))
    assert image is not None, "there are states"
    return image.png


def _figure(record: ImportRecord) -> Figure:
    from matplotlib.figure import Figure

    problem = record.problem
    visits = np.bincount(problem.trajectories.states, minlength=problem.mdp.n_states).astype(np.float64)
    if problem.xy is None:
        return _bars(problem.mdp.state_names or (), visits)
    at = np.asarray(problem.xy)
    shapes = _shapes(record, at)
    wide, high = np.maximum(np.ptp(np.concatenate([at, *record.tracks]), axis=0), 1e-12)
    figure = Figure(figsize=(WIDTH, 1.0 + float(np.clip(0.42 * WIDTH * high / wide, 1.4, 5.0))), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    _places(left, shapes, at, None)
    drawn = _tracks(left, record.tracks)
    left.set_title(f"{drawn} on {len(at):,} places")
    if shapes is None and problem.mdp.transitions.nnz <= MOST_MOVES:
        plot.moves(problem.mdp, at, right)
    colours = _places(right, shapes, at, np.where(visits > 0, visits, np.nan))
    # Plain "0.01", which stays legible if mathtext is switched off.
    figure.colorbar(colours, ax=[left, right], label="visits", format="%g", pad=0.02, aspect=25, shrink=0.85)
    never = int((visits == 0).sum())
    right.set_title("visits" + (f" (grey: none, {never:,} places)" if never else ""))
    for ax in (left, right):
        ax.set_aspect("equal")
        ax.grid(False)
        ax.set_xlabel("x →")
    left.set_ylabel(f"y {'↓' if problem.y_down else '↑'}", rotation=0, ha="right")
    if problem.y_down:
        left.invert_yaxis()  # the right axis is shared
    figure.legend(loc="outside lower left", ncols=2, handlelength=1.0)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    names = problem.mdp.state_names
    if names is not None:
        order = np.argsort(-visits, kind="stable")
        look: dict[str, Any] = {"diameter": _size(at) ** 0.5, "tiles": False}
        write_names(right, at, lambda s: names[s], order[visits[order] > 0], **look)
    return figure


def _shapes(record: ImportRecord, at: Floats) -> Floats | None:
    """Return the corners of every square or hexagon, (S, k, 2); None for other places."""
    mapping = record.mapping or {}
    if mapping.get("kind") == "grid":
        half = np.diff(mapping["edges"][0][:2])[0] / 2
        corners = half * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    elif mapping.get("kind") == "hexagons":
        angle = np.pi / 6 + np.pi / 3 * np.arange(6)
        corners = mapping["width"] / 3**0.5 * np.column_stack([np.cos(angle), np.sin(angle)])
    else:
        return None
    return np.asarray(at[:, None] + corners)


def _places(ax: Axes, shapes: Floats | None, at: Floats, values: Floats | None) -> Any:
    """Draw squares, hexagons or dots: outlined, or coloured by values with grey for missing ones."""
    from matplotlib.colors import LogNorm

    if values is None:
        every = np.ones(len(at), dtype=bool)
        return _drawn(ax, shapes, at, every, facecolors="#F2F2F2", edgecolors="#A0A0A0", linewidths=0.3)
    known = np.isfinite(values)
    if not known.all():
        _drawn(ax, shapes, at, ~known, facecolors=plot.GREY, linewidths=0.0)
    drawn = _drawn(ax, shapes, at, known, linewidths=0.0)
    drawn.set_array(values[known])
    drawn.set_cmap(plot.SEQUENTIAL)
    low, high = values[known].min(), values[known].max()
    if high > LOG_FROM * low:
        drawn.set_norm(LogNorm(low, high))
    return drawn


def _drawn(ax: Axes, shapes: Floats | None, at: Floats, which: Flags, **look: Any) -> Any:
    from matplotlib.collections import PolyCollection

    if shapes is None:
        x, y = at[which].T
        return ax.scatter(x, y, s=_size(at), zorder=6, **look)
    drawn = ax.add_collection(PolyCollection(list(shapes[which]), **look))
    ax.autoscale_view()
    return drawn


def _size(at: Floats) -> float:
    """Return the area of a dot, in square points."""
    return float(np.clip(6000.0 / len(at), 2.0, 60.0))


def _tracks(ax: Axes, tracks: list[Floats]) -> str:
    """Draw tracks from a dot at their start to a square at their end; return how many were drawn, in words."""
    from matplotlib.collections import LineCollection

    every = max(1, -(-len(tracks) // MOST_TRACKS))
    some = tracks[::every]
    thin = max(1, sum(map(len, some)) // MOST_POINTS)
    some = [track[::thin] for track in some]
    alpha = float(np.clip(20.0 / len(some), 0.15, 0.8))
    ax.add_collection(LineCollection(some, colors=TRACK, linewidths=0.6, alpha=alpha, zorder=4))
    for k, (marker, label) in {0: ("o", "begins"), -1: ("s", "ends")}.items():
        x, y = np.array([track[k] for track in some]).T
        look: dict[str, Any] = {"color": "black"} if k == 0 else {"facecolors": "white", "edgecolors": "black"}
        ax.scatter(x, y, s=6.0, marker=marker, linewidths=0.4, zorder=5, label=label, **look)
    ax.autoscale_view()
    return f"{len(some):,} of {len(tracks):,} recorded tracks" if every > 1 else f"{len(tracks):,} recorded tracks"


def _bars(names: tuple[str, ...], visits: Floats) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    order = np.argsort(-visits, kind="stable")[:MOST_BARS]
    figure = Figure(figsize=(WIDTH, 0.9 + 0.16 * order.size), layout="constrained")
    ax = figure.subplots()
    ax.barh(np.arange(order.size), visits[order], color=TRACK)
    ax.set_yticks(np.arange(order.size), [names[s][:40] for s in order])
    ax.invert_yaxis()
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("visits")
    ax.grid(axis="y", visible=False)
    more = f"the {order.size} most visited of {visits.size:,} places" if visits.size > order.size else "places"
    ax.set_title(more)
    return figure
