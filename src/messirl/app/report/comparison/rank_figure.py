"""Figure of mean ranks: a panel per kind of unlabelled trajectories, a mark per number of experts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from messirl.app.report.common.axes import name_bars, panels
from messirl.app.report.common.method_style import WIDTH
from messirl.app.workflow.comparison_record import OVERALL, ComparisonRecord, label, part_of
from messirl.paper.experiments.benchmark_tasks import QUALITIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOOKS = (("#56B4E9", "o"), ("#0072B2", "s"), ("#222222", "D"), ("#777777", "^"))  # from few experts to many
APART = 0.22  # between the marks of one method, where two methods are 1 apart


def ranks_figure(record: ComparisonRecord) -> Figure | None:
    """Draw mean ranks with their 95 % intervals over runs, the best method on top."""
    from matplotlib.lines import Line2D

    kinds = [quality for quality in QUALITIES if any(cell.unlabelled == quality for cell in record.cells)]
    numbers = sorted({cell.experts for cell in record.cells})
    order = sorted(record.methods, key=lambda method: record.ranks[OVERALL][method].mean)
    if len(record.cells) < 2 or len(order) < 2:
        return None
    figure, grid = panels(WIDTH, 0.9 + 0.36 * len(order), columns=len(kinds), squeeze=False, sharey=True, sharex=True)
    for ax, kind in zip(grid[0], kinds, strict=True):
        for j, n in enumerate(numbers):
            colour, marker = LOOKS[min(j, len(LOOKS) - 1)]
            ranks = record.ranks[part_of(n, kind)]
            for place, method in enumerate(order):
                y, found = place + APART * (j - (len(numbers) - 1) / 2), ranks[method]
                if np.isfinite([found.low, found.high]).all():
                    ends = np.clip([found.low, found.high], 1.0, len(order))
                    ax.plot(ends, [y, y], color=colour, linewidth=1.1)
                ax.plot([found.mean], [y], color=colour, marker=marker, linestyle="none")
        ax.set_title(f"unlabelled: {kind}")
        ax.set_xlabel("mean rank (1 is best)")
        ax.set_xlim(0.7, len(order) + 0.3)
        ax.set_xticks(range(1, len(order) + 1))
    name_bars(grid[0][0], [label(method) for method in order])
    words = [f"{n} expert{'' if n == 1 else 's'}" for n in numbers]
    handles = [
        Line2D([], [], color=LOOKS[min(j, len(LOOKS) - 1)][0], marker=LOOKS[min(j, len(LOOKS) - 1)][1], label=word)
        for j, word in enumerate(words)
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    return figure
