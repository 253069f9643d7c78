"""Layout of states on the map: tiles of a grid, dots of a network, or lanes of a road."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from messirl._types import Floats, Ints
from messirl.data.mdp import MDP

MOST = 4000  # maximum number of tiles of a map
MOVES = 60_000  # maximum number of transitions sent to the page for drawing along them
SLIGHT = 0.2  # of a tile; an action with a smaller expected displacement has no arrow
FULL = 0.6  # minimum share of occupied lattice cells for states to be drawn as tiles


@dataclass(frozen=True)
class Layout:
    """Positions of the states of a problem on the map.

    kind : "grid" (tiles), "graph" (dots joined by transitions) or "lanes" (tiles with several states)
    tile : (S,) the tile of each state; −1: none
    at : (T, 2) the centre of each tile, y upwards
    labels : name of each tile; columns : labels below the columns of a map of lanes
    road : of lanes, the position of each state across the road, and the cars beside it
    """

    kind: str
    tile: Ints
    at: Floats
    labels: list[str]
    columns: tuple[str, ...] = ()
    road: dict[str, Any] | None = None

    @property
    def n_tiles(self) -> int:
        """Number of tiles."""
        return len(self.at)

    def mean(self, values: Floats, weights: Floats | None = None) -> Floats:
        """Return the mean of the values of the states in each tile."""
        here = self.tile >= 0
        weights = np.ones(len(values)) if weights is None else weights + 1e-12 * max(weights.max(), 1e-300)
        total = np.bincount(self.tile[here], (values * weights)[here], minlength=self.n_tiles)
        return np.asarray(total / np.bincount(self.tile[here], weights[here], minlength=self.n_tiles))

    def sum(self, values: Floats) -> Floats:
        """Return the sum of the values of the states in each tile."""
        here = self.tile >= 0
        return np.asarray(np.bincount(self.tile[here], values[here], minlength=self.n_tiles), dtype=np.float64)


def make_layout(mdp: MDP, xy: Floats | None, *, y_down: bool = False) -> Layout:
    """Return a layout by coordinates, or by the network of transitions if there are none."""
    from messirl.app.workflow.graph_layout import network_places

    if xy is not None and not np.isfinite(xy).all(axis=1).any():
        xy = None  # all coordinates are missing
    at = network_places(mdp) if xy is None else np.asarray(xy, dtype=np.float64) * [1.0, -1.0 if y_down else 1.0]
    if at is None:  # too many states for a network layout: a square, row by row
        y, x = np.divmod(np.arange(mdp.n_states), int(np.ceil(np.sqrt(mdp.n_states))))
        at = np.column_stack([x, -y]).astype(np.float64)
    placed = np.isfinite(at).all(axis=1)
    tile = np.where(placed, np.cumsum(placed) - 1, -1)
    names = [mdp.state_names[s] if mdp.state_names else f"state {s}" for s in np.flatnonzero(placed)]
    kind = "grid" if not mdp.state_action and _lattice(at[placed]) else "graph"
    return Layout(kind, tile, _in_units(at[placed]), names)


def _in_units(at: Floats) -> Floats:
    """Scale coordinates by the smallest distance along an axis, so that a tile is 1 by 1."""
    if len(at) < 2:
        return at - at
    if _lattice(at):
        return np.asarray((at - at.min(axis=0)) / _steps(at))
    from scipy.spatial import cKDTree

    near = cKDTree(at).query(at, k=2)[0][:, 1]
    positive = near[near > 0]
    return np.asarray((at - at.min(axis=0)) / (np.quantile(positive, 0.2) if positive.size else 1.0))


def _steps(at: Floats) -> Floats:
    out = []
    for axis in at.T:
        gaps = np.diff(np.unique(axis))
        out.append(gaps[gaps > 1e-9 * (np.ptp(axis) or 1.0)].min(initial=np.inf))
    return np.array([step if np.isfinite(step) else 1.0 for step in out])


def _lattice(at: Floats) -> bool:
    """Return whether positions are the cells of a lattice and fill most of it."""
    if len(at) < 4:
        return False
    cells = (at - at.min(axis=0)) / _steps(at)
    whole = np.rint(cells)
    if np.abs(cells - whole).max() > 1e-6 or whole.max() > 2000:
        return False
    size = float(np.prod(whole.max(axis=0) + 1))
    return len(np.unique(whole, axis=0)) == len(at) >= FULL * size


def transitions_of(mdp: MDP) -> dict[str, Any] | None:
    """Return all transitions (from, to, highest probability); None if there are too many."""
    table = max_probability(mdp)
    if table.nnz > MOVES:
        return None
    return {"from": table.row.tolist(), "to": table.col.tolist(), "p": np.round(table.data, 3).tolist()}


def max_probability(mdp: MDP) -> sp.coo_array:
    """Return max_a p(s'|s, a), (S, S)."""
    moves = mdp.transitions.tocoo()
    order = np.lexsort((moves.data, moves.col, moves.row // mdp.n_actions))
    s, to, p = (moves.row // mdp.n_actions)[order], moves.col[order], moves.data[order]
    last = np.append((np.diff(s) != 0) | (np.diff(to) != 0), True) if s.size else np.zeros(0, dtype=bool)
    return sp.coo_array((p[last], (s[last], to[last])), shape=(mdp.n_states,) * 2)


def directions(mdp: MDP, layout: Layout) -> Floats:
    """Return the expected displacement of each action on the map, (S, A, 2); zero if it is small."""
    moves = mdp.transitions.tocoo()
    here, there = layout.tile[moves.row // mdp.n_actions], layout.tile[moves.col]
    known = (here >= 0) & (there >= 0)
    by = moves.data[known, None] * (layout.at[there[known]] - layout.at[here[known]])
    size = mdp.n_states * mdp.n_actions
    out = np.stack([np.bincount(moves.row[known], by[:, i], minlength=size) for i in (0, 1)], axis=1)
    if layout.kind == "lanes":  # the vertical axis is traffic, which no action controls
        out[:, 1] = 0.0
    out[np.hypot(*out.T) < SLIGHT] = 0.0  # for example against a wall, with slips only
    return np.asarray(out.reshape(mdp.n_states, mdp.n_actions, 2))


def edges_of(mdp: MDP, layout: Layout) -> list[list[int]]:
    """Return the pairs of tiles that a transition joins, each once."""
    table = max_probability(mdp)
    one, other = layout.tile[table.row], layout.tile[table.col]
    keep = (one >= 0) & (other >= 0) & (one != other)
    pairs = np.unique(np.sort(np.column_stack([one[keep], other[keep]]), axis=1), axis=0)
    return [[int(a), int(b)] for a, b in pairs[:MOVES]]
