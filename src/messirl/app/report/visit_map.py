"""Map of state visits, written by `messirl show`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from messirl import plot
from messirl.app.report.common.images import render, write_bytes
from messirl.app.report.common.map_style import label_axes, write_names
from messirl.app.report.fit.map_axes import MOST_TRANSITIONS, tiled, widely_spread
from messirl.data.problem import Problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_visits(problem: Problem, target: Path) -> None:
    """Write a .png or .svg map of visits. Unvisited states are grey; states without coordinates are left out."""
    if target.suffix not in (".png", ".svg"):
        raise ValueError(f"`picture` {target}: unknown image format. End the file name in .png or .svg.")
    if problem.xy is None:
        raise ValueError(
            "`picture` needs coordinates, and the states have none. Add columns x and y to the table of states."
        )
    image = render("visits", lambda: _figure(problem))
    assert image is not None, "there are states"
    target.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(target, image.png if target.suffix == ".png" else image.svg)


def _figure(problem: Problem) -> Figure:
    from matplotlib.figure import Figure

    at = np.asarray(problem.xy, dtype=np.float64)
    here = np.isfinite(at).all(axis=1)
    visits = np.bincount(problem.trajectories.states, minlength=problem.mdp.n_states)[here].astype(np.float64)
    at = at[here]
    figure = Figure(figsize=(5.6, 4.2), layout="constrained")
    ax = figure.subplots()
    tiles = plot.on_grid(at) if not here.all() else tiled(problem.mdp, at)
    if not tiles and here.all() and problem.mdp.transitions.nnz <= MOST_TRANSITIONS:
        plot.moves(problem.mdp, at, ax)
    size = float(np.clip(6000.0 / max(len(at), 1), 1.0, 60.0))
    many = widely_spread(visits)
    visits[visits == 0] = np.nan
    plot.states(visits, at, ax, label="visits", logarithmic=many, size=size, tiles=tiles)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    label_axes(ax, y_down=problem.y_down)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    names = problem.mdp.state_names or range(problem.mdp.n_states)
    states = np.flatnonzero(here)
    order = np.argsort(-np.nan_to_num(visits), kind="stable")
    write_names(
        ax, at, lambda i: str(names[states[i]]), order[np.isfinite(visits)[order]], diameter=size**0.5, tiles=tiles
    )
    return figure
