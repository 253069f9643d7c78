"""Figures of the reproduction: the paper's four panels, gains, the comparison with EM, the two solvers, the domains.

Panels, rows and figures without data are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from messirl.app.report.common.method_style import (
    ANCHORS,
    MAIN,
    STYLES,
    WIDTH,
    domain_name,
    eta_of,
    sort_domains,
    style_of,
)
from messirl.app.report.paper.curve_panel import Line, draw, gain, line, scale_x, y_range
from messirl.paper.domains import DOMAINS
from messirl.paper.experiments.curves import Curve, Curves
from messirl.paper.experiments.paper_settings import EXACT, SETTINGS, Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BASE = "MaxEnt"
ROW = 1.75  # inches


@dataclass(frozen=True)
class Axis:
    """The x axis of a panel."""

    figure: str
    label: str
    logarithmic: bool = False
    default: str = ""  # the setting whose value the other panels use

    @property
    def every_iteration(self) -> bool:
        """True if the figure shows every iteration of a training."""
        return self.figure in ("iterations", "em")


PANELS = (
    Axis("iterations", "iterations"),
    Axis("unlabelled", "unlabelled trajectories u", logarithmic=True, default="u"),
    Axis("nu", "share of expert-like trajectories ν", default="nu"),
    Axis("lambda", "regularisation λ0", logarithmic=True, default="lambda0"),
)


def paper_figure(curves: Curves, domain: str) -> Figure | None:
    """Draw performance against iterations, u, ν and λ0: the paper's methods on top, further baselines below."""
    return _four_panels(curves, domain, "performance")


def gain_figure(curves: Curves, domain: str) -> Figure | None:
    """Draw the same as gains over MaxEnt-IRL, paired by run, on which the claims are tested."""
    return _four_panels(curves, domain, "gain over MaxEnt-IRL", gains=True)


def _four_panels(curves: Curves, domain: str, what: str, *, gains: bool = False) -> Figure | None:
    main, anchors = ([m for m in some if not (gains and m == BASE)] for some in (MAIN, ANCHORS))
    axes = [axis for axis in PANELS if _plain(curves, domain, axis.figure)]
    if gains:
        axes = [axis for axis in axes if (domain, axis.figure, BASE) in curves]
    above = [_known(curves, domain, axis.figure, main) for axis in axes]
    others = [_others(curves, domain, axis.figure) for axis in axes]
    beside = [_known(curves, domain, axis.figure, anchors) + more for axis, more in zip(axes, others, strict=True)]
    rows = [(what, above)] if any(above) else []
    if any(others):
        rows.append((f"{what},\nother baselines", beside))
    if not rows:
        return None
    figure, grid = _canvas(len(rows), len(axes))
    for (title, methods), line_of_axes in zip(rows, grid, strict=True):
        for axis, names, ax in zip(axes, methods, line_of_axes, strict=True):
            _panel(ax, curves, domain, axis, names, gains=gains)
        line_of_axes[0].set_ylabel(title)
    for axis, ax in zip(axes, grid[-1], strict=True):
        ax.set_xlabel(axis.label)
    for (_, methods), where in zip(rows, ("outside upper center", "outside lower center"), strict=False):
        _legend(figure, _union(methods), where)
    return figure


def em_figure(curves: Curves, domain: str) -> Figure | None:
    """Draw EM with every η, MESSI and MESSIMAX, on μ1 and on μ2."""
    here = curves.methods(domain, "em")
    etas = tuple(sorted({eta for m in here if (eta := eta_of(m)) is not None}))
    if not etas:
        return None
    panels = []
    for mixture, suffix in (("mu1", ""), ("mu2", "-mu2")):
        em = [f"EM-{eta}{suffix}" for eta in etas if f"EM-{eta}{suffix}" in here]
        if em:
            panels.append((mixture, _known(curves, domain, "em", ("MESSIMAX", f"MESSI-{mixture}")) + em))
    figure, grid = _canvas(1, len(panels), height=2.6, narrow=2, sharey="row")
    everyone = [name for _, names in panels for name in names]
    for (mixture, names), ax in zip(panels, grid[0], strict=True):
        _panel(ax, curves, domain, Axis("em", "iterations"), names, etas, framed_by=everyone)
        ax.set_xlabel("iterations")
        ax.set_title(f"unlabelled trajectories from {mixture.replace('mu', 'μ')}")
    grid[0][0].set_ylabel("performance")
    _legend(figure, _union([names for _, names in panels]), "outside upper center", etas)
    return figure


def exact_figure(curves: Curves, domain: str) -> Figure | None:
    """Draw the paper's fixed steps on top and the optimum of the same objectives below, on the same axes."""
    columns = [(axis, "the paper's methods", _solved(curves, domain, axis.figure, MAIN)) for axis in PANELS[1:]]
    further = _solved(curves, domain, "lambda", tuple(m for m in STYLES if m not in MAIN))
    if further:
        columns.append((PANELS[-1], "other baselines", _solved(curves, domain, "lambda", ANCHORS) + further))
    columns = [column for column in columns if column[2]]
    if not columns:
        return None
    figure, grid = _canvas(2, len(columns), sharey="col")
    for k, (axis, title, methods) in enumerate(columns):
        for ax, suffix in zip((grid[0][k], grid[1][k]), ("", EXACT), strict=True):
            # Both panels have the same limits, so that heights are comparable.
            both = methods + [m + EXACT for m in methods]
            _panel(ax, curves, domain, axis, [m + suffix for m in methods], framed_by=both)
        grid[0][k].set_title(title, fontsize=7.5, fontweight="normal", fontstyle="italic")
        grid[1][k].set_xlabel(axis.label)
    grid[0][0].set_ylabel("performance,\npaper's fixed steps")
    grid[1][0].set_ylabel("performance,\nexact optimum")
    _legend(figure, _union([methods for *_, methods in columns]), "outside upper center")
    return figure


def domains_figure(names: Iterable[str]) -> Figure | None:
    """Draw the domains."""
    known: dict[str, Setting] = {}
    for name in sort_domains(list(names)):
        if name in SETTINGS:
            base = SETTINGS[name].domain
            known.setdefault(base, SETTINGS.get(base, SETTINGS[name]))
    if not known:
        return None
    figure, grid = _canvas(1, len(known), height=2.3, narrow=3)
    for (name, setting), ax in zip(known.items(), grid[0], strict=True):
        DOMAINS[name](**setting.arguments).draw(ax)
        ax.set_title(domain_name(name))
        ax.grid(False)
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
    return figure


def _canvas(
    rows: int, columns: int, *, height: float = ROW, narrow: int = 4, sharey: Any = False
) -> tuple[Figure, Any]:
    """Return a figure, without pyplot, and its panels, of which `narrow` fill the width of a page."""
    from matplotlib.figure import Figure

    width = WIDTH * max(min(columns / narrow, 1.0), 0.5)
    figure = Figure(figsize=(width, rows * height + 0.55), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharex="col", sharey=sharey)
    return figure, grid


def _panel(
    ax: Axes,
    curves: Curves,
    domain: str,
    axis: Axis,
    methods: Sequence[str],
    etas: tuple[int, ...] = (),
    framed_by: Sequence[str] = (),
    gains: bool = False,
) -> None:
    lines = _lines(curves, domain, axis.figure, methods, etas, gains)
    around = _lines(curves, domain, axis.figure, framed_by, etas) if framed_by else lines
    if gains:
        zero = STYLES[BASE]
        ax.axhline(0.0, color=zero.colour, linestyle=zero.dashes, linewidth=0.8, zorder=2)
    draw(ax, lines, y_range(around, axis.every_iteration, gains) if around else None, axis.every_iteration)
    points = np.unique(np.concatenate([one.x for one in lines])) if lines else np.zeros(0)
    scale_x(ax, points, axis.logarithmic)
    if axis.default and domain in SETTINGS:
        ax.axvline(getattr(SETTINGS[domain], axis.default), color="#888888", linewidth=0.8, linestyle=":", zorder=1)


def _lines(
    curves: Curves, domain: str, figure: str, methods: Sequence[str], etas: tuple[int, ...], gains: bool = False
) -> list[Line]:
    out = []
    for method in methods:
        curve: Curve | None = curves[domain, figure, method]
        if gains and curve is not None:
            curve = gain(curve, curves[domain, figure, BASE])
        if curve is not None:
            out.append(line(curve, style_of(method, etas)))
    return out


def _legend(figure: Any, methods: Sequence[str], where: str, etas: tuple[int, ...] = ()) -> None:
    from matplotlib.lines import Line2D

    looks = [style_of(m, etas) for m in methods]
    handles = [Line2D([], [], label=one.label, **one.line) for one in looks]
    # About 15 letters per inch; the line before each label takes the space of 9 letters.
    letters = sum(len(one.label) + 9 for one in looks)
    rows = int(np.ceil(letters / (15.6 * figure.get_figwidth())))
    figure.legend(handles=handles, loc=where, ncols=int(np.ceil(len(handles) / rows)))


def _plain(curves: Curves, domain: str, figure: str) -> list[str]:
    return [m for m in curves.methods(domain, figure) if not m.endswith(EXACT)]


def _known(curves: Curves, domain: str, figure: str, wanted: Sequence[str]) -> list[str]:
    return [m for m in wanted if (domain, figure, m) in curves]


def _others(curves: Curves, domain: str, figure: str) -> list[str]:
    """Return methods that are not in the paper: the further baselines in order, then any others of the table."""
    here = [m for m in _plain(curves, domain, figure) if m not in MAIN]
    order = list(STYLES)
    return sorted(here, key=lambda m: (order.index(m) if m in order else len(order), m))


def _solved(curves: Curves, domain: str, figure: str, wanted: Sequence[str]) -> list[str]:
    """Return the methods with results of both solvers."""
    return [m for m in _known(curves, domain, figure, wanted) if (domain, figure, m + EXACT) in curves]


def _union(lists: Iterable[Iterable[str]]) -> list[str]:
    """Return all methods, those with the same label only once (EM on μ1 and on μ2)."""
    out: dict[str, str] = {}
    for methods in lists:
        for m in methods:
            out.setdefault(style_of(m).label, m)
    order = {style_of(m).label: k for k, m in enumerate(STYLES)}
    return [out[label] for label in sorted(out, key=lambda label: order.get(label, len(order)))]
