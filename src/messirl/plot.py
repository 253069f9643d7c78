"""Plots of a fitted model: reward, visitation and policy on a map of the states, and the history of the search.

    ax = messirl.plot.reward(model, xy)     xy : (S, 2) coordinates of the states; plot.grid(rows, columns) makes them

Every function draws into `ax` (or a new one) and returns it. States on a regular grid become tiles, others dots.
Values that are not finite are grey.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from messirl._types import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SEQUENTIAL = "cividis"
DIVERGING = "PuOr_r"
GREY = "#B8B8B8"  # a state without a number
THINNEST = 0.1  # smallest ratio of a map's sides
DECADES = 4  # most decades of a logarithmic colour scale


def grid(rows: int, columns: int) -> Floats:
    """Return coordinates of states numbered row by row, the first row on top."""
    r, c = np.divmod(np.arange(rows * columns), columns)
    return np.column_stack([c, rows - 1 - r]).astype(np.float64)


def reward(
    model: Any, xy: npt.ArrayLike, ax: Axes | None = None, *, size: float = 60.0, tiles: bool | None = None
) -> Axes:
    """Plot r(s) of a fitted model; with state-action features the mean over the allowed actions."""
    values = state_rewards(model)
    return states(values, xy, ax, label="reward", diverging=_both_signs(values), size=size, tiles=tiles)


def state_rewards(model: Any) -> Floats:
    """Return r(s) of a fitted model, (S,); with state-action features the mean over the allowed actions."""
    values = np.asarray(model.reward_)
    if values.ndim == 1:
        return values
    allowed = model.mdp_.allowed
    return np.asarray(np.where(allowed, values, 0.0).sum(axis=1) / np.maximum(allowed.sum(axis=1), 1))


def visitation(
    model: Any,
    xy: npt.ArrayLike,
    ax: Axes | None = None,
    *,
    logarithmic: bool = False,
    size: float = 60.0,
    tiles: bool | None = None,
) -> Axes:
    """Plot the expected discounted visits of every state."""
    label = "expected visits"
    return states(model.visitation_, xy, ax, label=label, logarithmic=logarithmic, size=size, tiles=tiles)


def policy(
    model: Any,
    xy: npt.ArrayLike,
    ax: Axes | None = None,
    *,
    step: int | None = None,
    goal: int | None = None,
    among: npt.ArrayLike | None = None,
    even: bool = False,
    size: float = 60.0,
    tiles: bool | None = None,
) -> Axes:
    """Plot the mean move out of every state under the policy, as arrows on the reward.

    among : the states that get an arrow; None: all
    even : an arrow's length is the agreement of the moves, ‖E Δ‖ / E ‖Δ‖, instead of the length of the mean move
    """
    at = _coordinates(model.mdp_.n_states, xy)
    step = model.mdp_.first_step if step is None else step
    table = model.predict_proba(np.arange(len(at)), step=step, goal=goal)
    mean_next = (model.mdp_.transitions @ at).reshape(*table.shape, 2)
    move = np.einsum("sa,sad->sd", table, mean_next - at[:, None])
    ax = reward(model, at, ax, size=size, tiles=tiles)
    length = np.linalg.norm(move, axis=1)
    shown = length > 1e-9
    if even:
        move = move / np.maximum(_mean_distance(model.mdp_, table, at), 1e-300)[:, None]
        length = np.where(shown, np.linalg.norm(move, axis=1), 0.0)
        shown &= length > 1e-3
    spacing = _spacing(at)
    if among is not None:
        chosen = np.zeros(len(at), dtype=bool)
        chosen[np.asarray(among)] = True
        shown &= chosen
        spacing = apart(at[shown])
    elif even:
        spacing = apart(at)
    unit = move[shown] / max(float(length[shown].max(initial=0.0)), 1e-300)
    on_dots = tiles is False or not on_grid(at)
    return arrows(at[shown], unit, spacing, ax, even=even, on_dots=on_dots)


def arrows(at: Floats, unit: Floats, spacing: float, ax: Axes, *, even: bool = True, on_dots: bool = False) -> Axes:
    """Draw arrows (n, 2) from places (n, 2); one of length 1 is as long as the space between states allows.

    even : scale the thickness with that space, too
    on_dots : the states are dots, not tiles: an arrow starts at the dot, along the lines to other dots
    """
    look: dict[str, Any] = {"width": 0.009, "linewidth": 0.6, "pivot": "mid", "color": "white", "edgecolor": "black"}
    if even:
        look |= {"units": "xy", "width": 0.11 * spacing, "linewidth": 0.5, "headlength": 3.5, "headaxislength": 3.2}
    if even and on_dots:
        look |= {"width": 0.08 * spacing, "pivot": "tail", "color": "black", "edgecolor": "white"}
    ax.quiver(*at.T, *unit.T, angles="xy", scale_units="xy", scale=1.3 / spacing, zorder=5, **look)
    return ax


def history(model: Any, ax: Axes | None = None) -> Axes:
    """Plot the objective and the projected gradient over the iterations."""
    ax = _axes(ax)
    rows = model.history_
    ax.plot(rows["iteration"], rows["objective"], color="#0072B2", label="objective")
    ax.set_xlabel("iteration")
    ax.set_ylabel("objective", color="#0072B2")
    other = ax.twinx()
    norms = np.maximum(rows["gradient_norm"], 1e-300)
    other.semilogy(rows["iteration"], norms, color="#D55E00", linestyle="--", label="projected gradient")
    other.set_ylabel("projected gradient", color="#D55E00")
    return ax


def states(
    values: npt.ArrayLike,
    xy: npt.ArrayLike,
    ax: Axes | None = None,
    *,
    label: str = "",
    diverging: bool = False,
    logarithmic: bool = False,
    size: float = 60.0,
    tiles: bool | None = None,
) -> Axes:
    """Plot one number per state, as coloured tiles (regular grids) or dots of an area of `size` square points.

    tiles : False draws dots even on a grid; None and True draw tiles where the coordinates allow it
    Numbers that are not finite, and on a logarithmic scale those that are not positive, are grey.
    """
    from matplotlib.colors import ListedColormap

    v = np.asarray(values, dtype=np.float64)
    if v.ndim != 1:
        raise ValueError(f"values have shape {v.shape}: give one number per state")
    at = _coordinates(len(v), xy)
    ax = _axes(ax)
    known = np.isfinite(v) & (v > 0 if logarithmic else True)
    v = np.where(known, v, np.nan)
    colours = _colours(v[known], diverging, logarithmic)
    dots: dict[str, Any] = {"s": size, "edgecolors": "0.3", "linewidths": 0.4 if size > 12 else 0.0, "zorder": 3}
    table = None if tiles is False else _tiles(at, v)
    drawn: Any
    if table is not None:
        drawn = ax.pcolormesh(*table, shading="nearest", **colours)
        grey = _tiles(at, np.where(known, np.nan, 0.0))
        if grey is not None and not known.all():
            ax.pcolormesh(*grey, shading="nearest", cmap=ListedColormap([GREY]))
    else:
        drawn = ax.scatter(at[known, 0], at[known, 1], c=v[known], **dots, **colours)
        if not known.all():
            ax.scatter(at[~known, 0], at[~known, 1], color=GREY, **{**dots, "zorder": 2.5})
    _widen(at, ax)
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
    # Plain "0.01" instead of mathtext: it stays legible where mathtext is switched off.
    ax.figure.colorbar(drawn, ax=ax, label=label, shrink=0.85, format="%g" if logarithmic else None)
    return ax


def on_grid(xy: npt.ArrayLike) -> bool:
    """Return True if states at these coordinates become tiles."""
    at = np.asarray(xy, dtype=np.float64)
    return _tiles(at, np.zeros(len(at))) is not None


def moves(mdp: Any, xy: npt.ArrayLike, ax: Axes | None = None) -> Axes:
    """Plot thin lines between states that a transition joins; call it first, and draw the states on top."""
    from matplotlib.collections import LineCollection

    at = _coordinates(mdp.n_states, xy)
    ax = _axes(ax)
    pairs = joined(mdp)
    ax.add_collection(LineCollection(list(at[pairs]), colors="0.72", linewidths=0.6, zorder=1))
    ax.autoscale_view()
    return ax


def joined(mdp: Any) -> Ints:
    """Return the pairs s < s', (m, 2), of states that a transition joins in either direction."""
    coo = mdp.transitions.tocoo()
    ends = np.column_stack([coo.row // mdp.n_actions, coo.col]).astype(np.int64)
    ends = np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1)
    return np.unique(ends, axis=0)


def _widen(at: Floats, ax: Axes) -> None:
    """Widen the axes around states that all lie on one line."""
    low, high = at.min(axis=0), at.max(axis=0)
    room = THINNEST * float((high - low).max())
    if room > 0:
        middle, half = (low + high) / 2, np.maximum((high - low) / 2, room / 2)
        for i, name in enumerate("xy"):
            if high[i] - low[i] < room:
                getattr(ax, f"set_{name}lim")(middle[i] - half[i], middle[i] + half[i])


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def _coordinates(n: int, xy: npt.ArrayLike) -> Floats:
    at = np.asarray(xy, dtype=np.float64)
    if at.shape != (n, 2):
        raise ValueError(f"xy has shape {at.shape}: give one pair of coordinates for each of the {n} states")
    if not np.isfinite(at).all():
        raise ValueError(f"xy[{int(np.argmax(~np.isfinite(at).all(axis=1)))}] is not finite")
    return at


def _spacing(at: Floats) -> float:
    gaps = np.concatenate([np.diff(np.unique(column)) for column in at.T])
    return float(np.median(gaps)) if gaps.size else 1.0


def apart(at: Floats) -> float:
    """Return the median distance from a state to its nearest neighbour, on a grid or not."""
    from scipy.spatial import cKDTree

    places = np.unique(at, axis=0)
    if len(places) < 2:
        return 1.0
    distance, _ = cKDTree(places).query(places, k=2)
    return float(np.median(distance[:, 1]))


def _mean_distance(mdp: Any, table: Floats, at: Floats) -> Floats:
    """Return Σ_a π(a|s) Σ_s' p(s'|s,a) ‖x(s') − x(s)‖, shape (S,)."""
    coo = mdp.transitions.tocoo()
    source = coo.row // mdp.n_actions
    far = table.ravel()[coo.row] * coo.data * np.linalg.norm(at[coo.col] - at[source], axis=1)
    return np.asarray(np.bincount(source, far, minlength=len(at)), dtype=np.float64)


def scale(values: npt.ArrayLike) -> dict[str, Any]:
    """Return the colour scale of rewards, centred at zero where they have both signs."""
    v = np.asarray(values, dtype=np.float64)
    return _colours(v[np.isfinite(v)], _both_signs(v), False)


def _both_signs(values: Floats) -> bool:
    finite = values[np.isfinite(values)]
    least = 1e-9 * float(np.abs(finite).max(initial=0.0))  # a computed zero may be slightly below or above
    return bool(finite.min(initial=0.0) < -least and finite.max(initial=0.0) > least)


def _colours(known: Floats, diverging: bool, logarithmic: bool) -> dict[str, Any]:
    """Return the colour map and its range."""
    from matplotlib.colors import LogNorm, Normalize

    top = float(np.abs(known).max(initial=0.0)) or 1.0
    if diverging:
        return {"cmap": DIVERGING, "norm": Normalize(-top, top)}
    if logarithmic:
        least = max(float(known.min(initial=top)), top * 10.0**-DECADES)
        return {"cmap": SEQUENTIAL, "norm": LogNorm(min(least, top / 10), top)}
    if known.size == 0:
        return {"cmap": SEQUENTIAL, "norm": Normalize(0.0, 1.0)}
    return {"cmap": SEQUENTIAL}


def _tiles(at: Floats, values: Floats) -> tuple[Floats, Floats, Floats] | None:
    """Return (x, y, table) if the states fill at least half of an evenly spaced grid, else None."""
    x, column = np.unique(at[:, 0], return_inverse=True)
    y, row = np.unique(at[:, 1], return_inverse=True)
    even = all(len(axis) > 1 and np.ptp(np.diff(axis)) < 1e-9 * np.ptp(axis) for axis in (x, y))
    cells = row * len(x) + column
    if not even or len(at) * 2 < len(x) * len(y) or len(np.unique(cells)) < len(at):
        return None
    table = np.full((len(y), len(x)), np.nan)
    table[row, column] = values
    return x, y, table
