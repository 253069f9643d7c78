"""Base layer of the maps of a fit: places of states, transitions, starts and ends, names.

States on a regular grid are tiles; others are dots, joined by lines where there are transitions. Maps of many states
are rasterised inside the SVG to keep the page small. States without visits or a finite value are grey.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from messirl import plot
from messirl._types import Floats, Ints
from messirl.app.report.common.axes import panels
from messirl.app.report.common.map_style import (
    AROUND,
    BETWEEN,
    dot_diameter,
    label_axes,
    spacing,
    tile_inks,
    write_names,
)
from messirl.app.report.common.method_style import WIDTH
from messirl.app.report.common.svg_tooltips import HoverArea, hover_areas
from messirl.app.report.fit.fit_figures import MANY
from messirl.app.workflow.ranking import ranked
from messirl.app.workflow.record import FitRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_TRANSITIONS = 50_000  # transitions above which they are left out, since they would be a grey cloud
MARKED = 12  # starts or ends above which they are not marked
LOCAL = 0.9  # least share of transitions of a grid to neighbouring cells, and of neighbours that are joined
BROAD = 1.8  # width by height above which two maps are stacked
SPREAD = 20.0  # ratio of the largest to the median visits above which their scale is logarithmic
START, END = "#009E73", "#D55E00"


class BaseMap:
    """The states of a fit that have coordinates, and how they are drawn.

    at : (n, 2) coordinates
    here : (n,) indices of these states
    shown : the model restricted to these states
    """

    def __init__(self, record: FitRecord) -> None:
        self.record = record
        self.here = record.states_on_map
        self.at = np.asarray(record.xy, dtype=np.float64)[self.here]
        self.shown = MappedModel(record)
        self.diameter = 5.0  # of a dot, in points; set by `figure`

    @cached_property
    def tiles(self) -> bool:
        """True if states are drawn as tiles."""
        return tiled(self.shown.mdp_, self.at)

    @cached_property
    def spacing(self) -> float:
        """The typical distance between states."""
        return spacing(self.at)

    @cached_property
    def room(self) -> float:
        """The margin around the outermost states; half a tile for tiles."""
        span = float(np.ptp(self.at, axis=0).max())
        return (0.5 * plot.apart(self.at) if self.tiles else max(0.6 * self.spacing, 0.06 * span)) or 1.0

    @property
    def around(self) -> Floats:
        """The corners of the area that a map shows."""
        return np.concatenate([self.at - self.room, self.at + self.room])

    @property
    def broad(self) -> bool:
        """True if a map needs the whole width of a page."""
        return aspect(self.around) > BROAD

    @cached_property
    def starts(self) -> Ints:
        """The start states on the map; none if there are too many."""
        found = np.flatnonzero(np.asarray(self.record.model.start_)[self.here] > 0)
        return found if found.size <= MARKED else found[:0]

    @cached_property
    def ends(self) -> Ints:
        """The terminal or goal states on the map; none if there are too many."""
        goals = self.record.model.goals_
        ends = self.shown.mdp_.terminal if goals is None else np.isin(self.here, goals)
        found = np.flatnonzero(ends)
        return found if found.size <= MARKED else found[:0]

    def figure(self, n: int) -> tuple[Figure, list[Any]]:
        """Return a figure with one or two maps, side by side or, if they are wide, one above the other."""
        around, shape = self.around, aspect(self.around)
        beside = n > 1 and shape <= BROAD
        width = (WIDTH / 2 if beside else WIDTH) - 0.9
        height = float(np.clip(width / shape, 0.9, 5.2 if n == 1 else 5.0))
        if n == 1:
            width = float(np.clip(height * shape, 2.5, width))
        self.diameter = dot_diameter(self.at, around, width, height)
        below = 0.3 if self.starts.size or self.ends.size else 0.1
        size = (WIDTH, height + 0.4 + below) if beside else (WIDTH, n * (height + 0.35) + below)
        size = (width + 0.9, height + 0.15 + below) if n == 1 else size
        figure, axes = panels(*size, *((1, n) if beside else (n, 1)), squeeze=False)
        return figure, list(axes.ravel())

    @property
    def look(self) -> dict[str, Any]:
        """The arguments with which `plot` draws the states."""
        return {"size": self.diameter**2, "tiles": self.tiles}

    def moves(self, ax: Axes) -> None:
        """Draw the transitions below the dots."""
        if not self.tiles and self.shown.mdp_.transitions.nnz <= MOST_TRANSITIONS:
            plot.moves(self.shown.mdp_, self.at, ax)

    def finish(self, ax: Axes, title: str, *, starts: bool = True, ends: Ints | None = None) -> None:
        """Add starts, ends, the title and axis directions; remove the frame; rasterise maps of many states."""
        self.mark(ax, self.starts if starts else self.starts[:0], "o", START, 5.0)
        self.mark(ax, self.ends if ends is None else ends, "s", END, 4.0)
        ax.set_title(title)
        ax.grid(False)
        ax.spines[:].set_visible(False)
        ax.set_xticks([])
        ax.set_yticks([])
        (left, low), (right, high) = self.at.min(axis=0) - self.room, self.at.max(axis=0) + self.room
        ax.set_xlim(left, right)
        ax.set_ylim(low, high)
        if not self.record.laid_out:
            label_axes(ax, y_down=self.record.y_down)
        if len(self.at) > MANY:
            # Transitions and states are rasterised; the few arrows above them stay vectors.
            ax.set_rasterization_zorder(4)

    def mark(self, ax: Axes, which: Ints, marker: str, colour: str, larger: float) -> None:
        """Draw a ring or a frame around some states."""
        size = (self.diameter + larger) ** 2 if not self.tiles else 60.0
        x, y = self.at[which].T
        offset = 0.0 if not self.tiles else 0.32 * self.spacing * (1 if marker == "o" else -1)
        look: dict[str, Any] = {"facecolors": "none", "edgecolors": colour, "linewidths": 1.6, "zorder": 6}
        ax.scatter(x - offset, y + abs(offset), marker=marker, s=size, clip_on=False, **look)

    def legend(self, figure: Figure, more: list[Any] | None = None, *, ends: Ints | None = None) -> None:
        """Add the legend of the marks below the maps."""
        from matplotlib.lines import Line2D

        kinds = [(self.starts, "o", START, "start"), (self.ends if ends is None else ends, "s", END, "end")]
        look: dict[str, Any] = {"linestyle": "none", "markerfacecolor": "none", "markeredgewidth": 1.5, "markersize": 6}
        handles = [
            Line2D([], [], marker=marker, markeredgecolor=colour, label=label, **look)
            for which, marker, colour, label in kinds
            if which.size
        ]
        handles = [*(more or []), *handles]
        if handles:
            figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), handlelength=1.6)

    def names(
        self,
        figure: Figure,
        axes: list[Any],
        spots: list[HoverArea] | None,
        texts: Sequence[Callable[[int], str]],
        shapes: Floats | Sequence[Floats] | None = None,
        *,
        lines: bool = False,
    ) -> None:
        """Write the names of the most visited states, and collect the tooltips of all states.

        The layout of the figure is done first and then fixed.

        texts : for each map, a function that returns the tooltip of state i
        shapes : (m, k, 2) polygons that names must not cover and, on tiles, are written above; for all maps or per map
        lines : whether lines run through the states, so that names are beside them
        """
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        order = ranked(np.nan_to_num(self.shown.visitation_))
        order = order[np.nan_to_num(self.shown.visitation_)[order] > 0]
        sizes = np.full(len(self.at), self.diameter)
        sizes[np.union1d(self.starts, self.ends)] += 6.0  # including the mark around it
        each = [shapes] * len(axes) if shapes is None or isinstance(shapes, np.ndarray) else shapes
        for ax, said, own in zip(axes, texts, each, strict=True):
            look: dict[str, Any] = {"diameter": sizes, "tiles": self.tiles, "inks": tile_inks(ax, self.at)}
            look["around"] = BETWEEN if lines and len(axes) == 1 else AROUND  # beside another map there is less room
            if lines or own is not None:
                look["lift"] = 0.4
            if own is not None and len(own):
                seen = ax.transData.transform(own.reshape(-1, 2)).reshape(own.shape)
                look["avoid"] = np.hstack([seen.min(axis=1), seen.max(axis=1)]).tolist()
            write_names(ax, self.at, self.called, order, **look)
            if spots is not None:
                spots += hover_areas(ax, self.at, said, 0.5 * plot.apart(self.at) if self.tiles else 0.0)

    def called(self, s: int) -> str:
        """Return the name of a state on the map, or its index."""
        names = self.record.model.mdp_.state_names
        return str(names[self.here[s]]) if names else str(self.here[s])


def tiled(mdp: Any, at: Floats) -> bool:
    """Return whether states are drawn as tiles: if they are grid cells with transitions between neighbours.

    They are dots where transitions jump over cells, where neighbours are not joined (walls would be invisible), and
    where features are of transitions.
    """
    if mdp.state_action or not plot.on_grid(at):
        return False
    pairs = plot.joined(mdp)
    if not len(pairs):
        return True
    unit = np.array([np.diff(np.unique(column))[0] for column in at.T])
    cell = np.round((at - at.min(axis=0)) / unit).astype(np.int64)
    steps = np.abs(cell[pairs[:, 0]] - cell[pairs[:, 1]])
    wide = int(cell[:, 0].max()) + 2
    there = cell[:, 1] * wide + cell[:, 0]
    neighbours = np.isin(there + 1, there).sum() + np.isin(there + wide, there).sum()
    return bool(np.mean(steps.max(axis=1) < 2) > LOCAL and (steps.sum(axis=1) == 1).sum() > LOCAL * neighbours)


def widely_spread(visits: Floats) -> bool:
    """Return whether a few states have nearly all visits, so that a logarithmic scale is needed."""
    met = visits[np.isfinite(visits) & (visits > 0)]
    return met.size > 0 and bool(met.max() > SPREAD * np.median(met))


def aspect(at: Floats) -> float:
    """Return the width by height of a map, within limits."""
    width, height = np.ptp(at, axis=0)
    return float(np.clip((width or 1e-9) / (height or 1e-9), 0.2, 8.0)) if width or height else 1.0


class MappedModel:
    """The model restricted to the states that have coordinates, as `plot` reads it."""

    def __init__(self, record: FitRecord) -> None:
        model, here = record.model, record.states_on_map
        self.reward_ = model.reward_[here]
        visits = model.visitation_[here]
        self.visitation_ = np.where(visits > 0, visits, np.nan)  # not visited: grey
        self.mdp_ = MappedMDP(model.mdp_, here)

    @property
    def state_rewards(self) -> Floats:
        """The reward per state; with state-action features, its mean over the allowed actions."""
        return plot.state_rewards(self)


class MappedMDP:
    """The MDP restricted to the states with coordinates; rows of transitions to other states sum to less than 1."""

    def __init__(self, mdp: Any, here: Ints) -> None:
        rows = (here[:, None] * mdp.n_actions + np.arange(mdp.n_actions)).ravel()
        self.transitions = sp.csr_array(mdp.transitions[rows][:, here])
        self.n_states, self.n_actions = len(here), mdp.n_actions
        self.allowed, self.terminal = mdp.allowed[here], mdp.terminal[here]
        self.state_action = mdp.state_action

    def next_states(self, state: Ints, chances: Floats) -> tuple[Ints, Ints, Floats]:
        """Return the transitions within the map from states (m,) under action probabilities (m, A).

        For every transition: the index of its state among those given, its next state and its probability.
        """
        rows = (state[:, None] * self.n_actions + np.arange(self.n_actions)).ravel()
        own = np.repeat(np.arange(state.size), self.n_actions)
        pick = sp.csr_array((chances.ravel(), (own, rows)), shape=(state.size, self.transitions.shape[0]))
        found = sp.coo_array(pick @ self.transitions)
        return found.row.astype(np.int64), found.col.astype(np.int64), np.asarray(found.data)
