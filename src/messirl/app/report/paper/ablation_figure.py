"""Figure of the comparison of learners: the gain of each way to use unlabelled trajectories over expert only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from messirl.app.report.common.method_style import STYLES, WIDTH, domain_name, sort_domains
from messirl.objective import OBJECTIVES
from messirl.paper.experiments.ablation import (
    EXPERT_ONLY,
    FIGURE,
    MIXTURES,
    WAYS,
    Learner,
    expert_only_learner,
    with_unlabelled,
)
from messirl.paper.experiments.curves import Curves, interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOURCES = {"mu1": ("MESSI-mu1", "μ1"), "mu3": ("MESSI-mu3", "μ3"), "MAX": ("MESSIMAX", "MAX")}
APART = 0.24  # distance between the marks of one way, in units of the distance between ways
LINEAR = 0.01  # the axis is logarithmic beyond: pooling can lose ten times the gains of others


def learners_figure(curves: Curves) -> Figure | None:
    """Draw gains over expert only, paired by run: a row per objective, a column per domain."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    domains = sort_domains([d for d in curves.domains if (d, FIGURE, expert_only_learner("counts").name) in curves])
    if not domains:
        return None
    figure = Figure(figsize=(WIDTH, 4.6), layout="constrained")
    grid = figure.subplots(len(OBJECTIVES), len(domains), squeeze=False, sharey=True, sharex="col")
    for objective, line in zip(OBJECTIVES, grid, strict=True):
        for domain, ax in zip(domains, line, strict=True):
            base = curves[domain, FIGURE, expert_only_learner(objective).name].last
            ax.axvline(0.0, color=STYLES["MaxEnt"].colour, linestyle="--", linewidth=0.8, zorder=1)
            bare = Learner(EXPERT_ONLY, None, objective, "given")
            marks = [(bare, 0.0, STYLES["MaxEnt"].colour, STYLES["MaxEnt"].marker)]
            for k, way in enumerate(WAYS, start=1):
                for j, source in enumerate(MIXTURES):
                    look = STYLES[SOURCES[source][0]]
                    marks.append(
                        (with_unlabelled(way, source, objective), k + APART * (j - 1), look.colour, look.marker)
                    )
            for learner, y, colour, marker in marks:
                if (domain, FIGURE, learner.name) not in curves:
                    continue
                found = interval(curves[domain, FIGURE, learner.name].last - base)
                ax.plot([found.low, found.high], [y, y], color=colour, linewidth=1.1)
                ax.plot([found.mean], [y], color=colour, marker=marker, linestyle="none")
        line[0].set_ylabel(f"objective: {objective}")
    grid[0][0].set_yticks(range(len(WAYS) + 1), ["expert only, start given,\nno ridge", *WAYS])
    grid[0][0].set_ylim(len(WAYS) + 0.6, -0.6)
    for domain, ax in zip(domains, grid[0], strict=True):
        ax.set_title(domain_name(domain))
    for ax in grid[-1]:
        ax.set_xscale("symlog", linthresh=LINEAR)
        low, high = ax.get_xlim()
        ticks = [t for t in (-1.0, -0.1, -LINEAR, 0.0, LINEAR, 0.1, 1.0) if low <= t <= high]
        ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
        ax.set_xticks([], minor=True)
        ax.set_xlabel("gain over expert only")
    handles = [
        Line2D(
            [],
            [],
            color=STYLES[name].colour,
            marker=STYLES[name].marker,
            linewidth=1.1,
            label=f"unlabelled from {word}",
        )
        for name, word in SOURCES.values()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    return figure
