"""Pictures of a fitted model: reward, visitation and policy on anything whose states have coordinates, and the history.

    ax = messirl.plot.reward(model, xy)     xy : (S, 2) coordinates of the states; plot.grid(rows, columns) makes them

Every function draws into `ax` (or a new one) and returns it. States on a regular grid become tiles, others dots.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from messirl.problem.mdp import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SEQUENTIAL = "cividis"
DIVERGING = "PuOr_r"


def grid(rows: int, columns: int) -> Floats:
    """Coordinates of states numbered row by row, the first row on top."""
    r, c = np.divmod(np.arange(rows * columns), columns)
    return np.column_stack([c, rows - 1 - r]).astype(np.float64)


def reward(model: Any, xy: npt.ArrayLike, ax: Axes | None = None) -> Axes:
    """r(s) of a fitted model; with state-action features the mean over the allowed actions."""
    values = model.reward_
    if values.ndim == 2:
        allowed = model.mdp_.allowed
        values = np.where(allowed, values, 0.0).sum(axis=1) / np.maximum(allowed.sum(axis=1), 1)
    return states(values, xy, ax, label="reward", diverging=bool(values.min() < 0 < values.max()))


def visitation(model: Any, xy: npt.ArrayLike, ax: Axes | None = None) -> Axes:
    """Expected discounted visits of every state."""
    return states(model.visitation_, xy, ax, label="expected visits")


def policy(
    model: Any, xy: npt.ArrayLike, ax: Axes | None = None, *, step: int | None = None, goal: int | None = None
) -> Axes:
    """The mean move out of every state under the policy, as arrows on the reward."""
    at = _coordinates(model.mdp_.n_states, xy)
    if model.mdp_.horizon is not None and step is None:
        step = 0
    table = model.predict_proba(np.arange(len(at)), step=step, goal=goal)
    mean_next = (model.mdp_.transitions @ at).reshape(*table.shape, 2)
    move = np.einsum(
        "sa,sad->sd",
        table,
        mean_next - np.where(table.sum(axis=1) > 0, 1.0, 0.0)[:, None, None] * at[:, None],
    )
    ax = reward(model, at, ax)
    length = np.linalg.norm(move, axis=1)
    shown = length > 1e-9
    unit = move[shown] / max(float(length.max(initial=0.0)), 1e-300)
    ax.quiver(
        *at[shown].T,
        *unit.T,
        angles="xy",
        scale_units="xy",
        scale=1.3 / _spacing(at),
        width=0.009,
        color="white",
        edgecolor="black",
        linewidth=0.6,
        pivot="mid",
    )
    return ax


def history(model: Any, ax: Axes | None = None) -> Axes:
    """The objective and the projected gradient over the iterations."""
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
) -> Axes:
    """One number a state, as coloured tiles (regular grids) or dots."""
    v = np.asarray(values, dtype=np.float64)
    if v.ndim != 1:
        raise ValueError(f"values have shape {v.shape}: give one number a state")
    at = _coordinates(len(v), xy)
    ax = _axes(ax)
    size = float(np.abs(v[np.isfinite(v)]).max(initial=0.0)) or 1.0
    colours: dict[str, Any] = {"cmap": DIVERGING, "vmin": -size, "vmax": size} if diverging else {"cmap": SEQUENTIAL}
    tiles = _tiles(at, v)
    drawn: Any
    if tiles is not None:
        drawn = ax.pcolormesh(*tiles, shading="nearest", **colours)
    else:
        drawn = ax.scatter(at[:, 0], at[:, 1], c=v, s=60, edgecolors="0.3", linewidths=0.4, zorder=3, **colours)
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.figure.colorbar(drawn, ax=ax, label=label, shrink=0.85)
    return ax


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
    gaps = [np.diff(np.unique(at[:, k])) for k in (0, 1)]
    sizes = np.concatenate(gaps)
    return float(np.median(sizes)) if sizes.size else 1.0


def _tiles(at: Floats, values: Floats) -> tuple[Floats, Floats, Floats] | None:
    """(x, y, table) where the states fill at least half of an evenly spaced grid, else None."""
    x, column = np.unique(at[:, 0], return_inverse=True)
    y, row = np.unique(at[:, 1], return_inverse=True)
    even = all(len(axis) > 1 and np.ptp(np.diff(axis)) < 1e-9 * np.ptp(axis) for axis in (x, y))
    cells = row * len(x) + column
    if not even or len(at) * 2 < len(x) * len(y) or len(np.unique(cells)) < len(at):
        return None
    table = np.full((len(y), len(x)), np.nan)
    table[row, column] = values
    return x, y, table
