"""Figures of one fit: weights, scores beside the baselines, maps, the policy on the map, convergence.

Maps of many states are drawn as pixels inside the SVG, so that the page stays small. A state that is never visited or
has no finite value is grey.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from messirl import plot
from messirl._types import Floats, Ints
from messirl.report.kit.axes import ADDS, BLUE, INK, TAKES, name_bars, panels
from messirl.report.kit.digits import rounded
from messirl.report.kit.names import short
from messirl.report.kit.style import WIDTH
from messirl.workflow.ranking import ALIKE, ranked
from messirl.workflow.record import FitRecord, Score

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_FEATURES = 40
MANY = 1000  # states or moves above which a map is drawn as pixels
MOST_MOVES = 50_000  # above which moves would be a grey cloud, and are left out
ARROWS = 30  # per side of the map, if there are too many states for one each
HELD_OUT: dict[str, Any] = {"marker": "o", "markersize": 5.5}
EXPERT: dict[str, Any] = {"marker": "D", "markersize": 4.0, "markerfacecolor": "white"}
LOCAL = 0.9  # share of the moves of a grid that go to neighbouring cells
SPREAD = 20.0  # ratio of the most to the median visits above which their scale is logarithmic


def weights_figure(record: FitRecord) -> Figure:
    """θ as bars, the largest on top, with 95 % intervals where they are known."""
    order = record.by_size[:MOST_FEATURES]
    theta, half = record.model.theta_[order], record.half_widths()[order]
    figure, ax = panels(WIDTH * 0.8, 0.55 + 0.17 * max(len(order), 3))
    place = np.arange(len(order))
    colours = [ADDS if weight >= 0 else TAKES for weight in theta]
    ax.barh(place, theta, color=colours, height=0.66)
    known = np.isfinite(half)
    if known.any():
        ax.errorbar(theta[known], place[known], xerr=half[known], fmt="none", ecolor=INK, elinewidth=0.9, capsize=1.8)
    ax.axvline(0.0, color=INK, linewidth=0.6)
    name_bars(ax, [short(record.called("feature", int(j)), 36) for j in order])
    ax.set_xlabel("weight θ: what one unit of the feature adds to the reward")
    return figure


def scores_figure(scores: list[Score]) -> Figure | None:
    """Log-probability per step: filled dots on held-out, hollow ones on the expert's own trajectories."""
    values = _values(scores)
    if np.isfinite(values).sum() < 2:
        return None
    low, high = score_limits(values)
    figure, ax = panels(WIDTH * 0.8, 0.95 + 0.22 * len(scores))
    for place, (held_out, expert) in enumerate(values):
        colour = BLUE if place == 0 else INK
        _dot(ax, expert, place, low, markeredgecolor=colour, **EXPERT)
        _dot(ax, held_out, place, low, color=colour, **HELD_OUT)
        beyond = [f"{rounded(v)}{of}" for v, of in ((held_out, ""), (expert, " (expert)")) if v < low]
        if beyond:
            words = f"◂ {', '.join(beyond)}"
            ax.annotate(words, (low, place), (3, 0), textcoords="offset points", va="center", fontsize=7)
    ax.set_yticks(range(len(scores)), [short(s.name, 36) for s in scores])
    ax.get_yticklabels()[0].set_fontweight("bold")
    ax.set_ylim(len(scores) - 0.5, -0.6)
    ax.set_xlim(low, high)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("log-probability a step (nats); further right is better")
    _score_legend(figure, values)
    return figure


def far_below(scores: list[Score]) -> bool:
    """Whether some method is only named at the left edge of the dot plot, because its dot would be far outside."""
    values = _values(scores)
    return bool(np.isfinite(values).any() and (values < score_limits(values)[0]).any())


def score_limits(values: Floats) -> tuple[float, float]:
    """The part of the axis that shows how most methods differ."""
    finite = values[np.isfinite(values)]
    best, middle, worst = float(finite.max()), float(np.median(finite)), float(finite.min())
    alike = ALIKE * max(abs(best), abs(worst))
    if best - worst > 6.0 * (best - middle) and best - middle > alike:
        worst = float(finite[finite >= best - 4.0 * (best - middle)].min())
    margin = 0.08 * (best - worst) if best - worst > alike else 0.05 * abs(best) or 0.1
    return worst - margin, best + margin


def maps_figure(record: FitRecord) -> Figure | None:
    """Reward and expected visits, side by side or, if the map is wide, one above the other."""
    at = places(record)
    if at is None:
        return None
    shown = Shown(record)
    figure, (left, right), dot, tiles = two_maps(at, shown.mdp_)
    plot.reward(shown, at, left, size=dot, tiles=tiles)
    logarithmic = widely_spread(shown.visitation_)
    plot.visitation(shown, at, right, size=dot, tiles=tiles, logarithmic=logarithmic)
    finish_map(left, "reward", len(at))
    finish_map(right, "expected visits", len(at))
    return figure


def two_maps(at: Floats, mdp: Part) -> tuple[Figure, Any, float, bool]:
    """A figure of two maps, its panels, the size of a dot, and whether states are tiles; dots are joined by moves."""
    aspect = _aspect(at)
    beside = aspect <= 1.8
    width = (WIDTH / 2 if beside else WIDTH) - 0.8
    height = float(np.clip(width / aspect, 0.9, 5.0))
    size = (WIDTH, height + 0.5) if beside else (WIDTH, 2 * height + 0.7)
    figure, both = panels(*size, *((1, 2) if beside else (2, 1)))
    tiles = tiled(mdp, at)
    if not tiles:
        for ax in both:
            _moves(mdp, at, ax)
    return figure, both, _dot_size(len(at), width * height), tiles


def policy_figure(record: FitRecord) -> Figure | None:
    """Where the policy goes: an arrow out of every state, or out of the most visited one of each part of the map."""
    at, policy = places(record), record.policy
    if at is None or policy is None:
        return None
    aspect = _aspect(at)
    height = float(np.clip((WIDTH - 0.9) / aspect, 1.2, 5.2))
    width = float(np.clip(height * aspect, 2.5, WIDTH - 0.9))
    figure, ax = panels(width + 0.9, height + 0.2)
    shown = Shown(record)
    shown.table = policy[record.placed]
    tiles = tiled(shown.mdp_, at)
    if not tiles:
        _moves(shown.mdp_, at, ax)
    among = None if len(at) <= ARROWS**2 else most_visited(at, shown.visitation_)
    plot.policy(shown, at, ax, among=among, even=True, tiles=tiles, size=_dot_size(len(at), width * height))
    ends = np.flatnonzero(shown.mdp_.terminal)
    if record.towards is not None:
        ends = np.flatnonzero(record.placed == record.towards)
    if ends.size <= ARROWS:
        ax.scatter(
            at[ends, 0], at[ends, 1], marker="s", s=70, facecolors="none", edgecolors=INK, linewidths=1.3, zorder=6
        )
    finish_map(ax, "", len(at))
    return figure


def history_figure(record: FitRecord) -> Figure:
    """The objective and the projected gradient over the iterations."""
    figure, ax = panels(WIDTH * 0.7, 2.1)
    plot.history(record.model, ax)
    other = figure.axes[-1]
    other.grid(False)
    other.yaxis.set_major_formatter("{x:g}")
    other.minorticks_off()
    other.spines["right"].set_visible(True)
    if len(record.model.history_) == 1:
        for axes in (ax, other):
            axes.lines[0].set_marker("o")
    return figure


def tiled(mdp: Any, at: Floats) -> bool:
    """Whether the states form a grid with moves to neighbouring cells, so that no lines need be drawn for moves."""
    if not plot.on_grid(at):
        return False
    x, y = np.unique(at[:, 0]), np.unique(at[:, 1])
    if len(at) == len(x) * len(y):
        return True
    pairs = plot.joined(mdp)
    steps = np.abs(at[pairs[:, 0]] - at[pairs[:, 1]]) / [x[1] - x[0], y[1] - y[0]]
    return bool(np.mean(steps.max(axis=1) < 1.5) > LOCAL) if len(pairs) else True


def widely_spread(visits: Floats) -> bool:
    """Whether a few states have nearly all visits, so that only a logarithmic scale shows the others."""
    met = visits[np.isfinite(visits) & (visits > 0)]
    return met.size > 0 and bool(met.max() > SPREAD * np.median(met))


def most_visited(at: Floats, visits: Floats) -> Ints:
    """The most visited state in each of ARROWS × ARROWS parts of the map."""
    low, span = at.min(axis=0), np.maximum(np.ptp(at, axis=0), 1e-300)
    span = np.full(2, span.max())  # the parts are squares
    cell = np.minimum(((at - low) / span * ARROWS).astype(np.int64), ARROWS - 1)
    part = cell[:, 0] * ARROWS + cell[:, 1]
    rank = np.empty(len(at), dtype=np.int64)
    rank[ranked(np.nan_to_num(visits))] = np.arange(len(at))
    order = np.lexsort((rank, part))
    first = np.flatnonzero(np.diff(part[order], prepend=-1))
    return np.asarray(order[first])


class Shown:
    """The model as `plot` reads it, on the states that have coordinates."""

    def __init__(self, record: FitRecord) -> None:
        model, here = record.model, record.placed
        self.reward_ = model.reward_[here]
        visits = model.visitation_[here]
        self.visitation_ = np.where(visits > 0, visits, np.nan)  # never visited: grey
        self.table: Floats = np.zeros((0, 0))
        self.mdp_ = Part(model.mdp_, here)

    def predict_proba(self, states: Ints, step: int | None = None, goal: int | None = None) -> Floats:
        """The policy that is shown."""
        return self.table[states]


class Part:
    """The MDP on the states that have coordinates; a move to any other state stays in place on the map."""

    def __init__(self, mdp: Any, here: Ints) -> None:
        rows = (here[:, None] * mdp.n_actions + np.arange(mdp.n_actions)).ravel()
        among = mdp.transitions[rows][:, here]
        lost = np.asarray(mdp.transitions[rows].sum(axis=1) - among.sum(axis=1)).ravel()
        away = np.flatnonzero(lost > ALIKE)
        staying = sp.coo_array((lost[away], (away, away // mdp.n_actions)), shape=among.shape)
        self.transitions = sp.csr_array(among + staying)
        self.n_states, self.n_actions = len(here), mdp.n_actions
        self.allowed, self.terminal = mdp.allowed[here], mdp.terminal[here]
        self.first_step = None


def places(record: FitRecord) -> Floats | None:
    """Coordinates of the states that have any; None where none has."""
    here = record.placed
    if record.xy is None or here.size == 0:
        return None
    return np.asarray(record.xy, dtype=np.float64)[here]


def _moves(mdp: Part, at: Floats, ax: Axes) -> None:
    """The moves below the dots."""
    if mdp.transitions.nnz <= MOST_MOVES:
        plot.moves(mdp, at, ax)


def finish_map(ax: Axes, title: str, n: int) -> None:
    """A title, no frame and, for many states, pixels."""
    ax.set_title(title)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    if n > MANY:
        ax.set_rasterization_zorder(4)  # moves and states become one picture; the few arrows above them stay vectors


def _aspect(at: Floats) -> float:
    width, height = np.ptp(at, axis=0)
    return float(np.clip((width or 1e-9) / (height or 1e-9), 0.2, 8.0)) if width or height else 1.0


def _dot_size(n: int, inches: float) -> float:
    """Area of a dot in square points: a third of the map's, shared by all."""
    return float(np.clip(0.33 * inches * 72**2 / n, 0.6, 60.0))


def _values(scores: list[Score]) -> Floats:
    """The held-out and the expert score of each method, (n, 2); NaN where there is none."""
    both = [[s.held_out, s.expert] for s in scores]
    return np.array([[np.nan if v is None else float(v) for v in pair] for pair in both])


def _dot(ax: Axes, value: float, place: int, low: float, **look: Any) -> None:
    """Draw a dot, unless it is far outside."""
    if value >= low:
        ax.plot([value], [place], linestyle="none", zorder=3, **look)


def _score_legend(figure: Figure, values: Floats) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="none", label=label, markeredgecolor=INK, **look)
        for label, look, column in zip(
            ("held out", "expert"), ({**HELD_OUT, "markerfacecolor": INK}, EXPERT), values.T, strict=True
        )
        if not np.isnan(column).all()
    ]
    figure.legend(handles=handles, loc="outside upper right", ncols=2, handlelength=1.0)
