"""Draws the studies' figures from their tables: python -m studies.figures [FOLDER]."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from messirl.paper.experiments.curves import interval
from studies.common import Rows, column, read, save_figure

BLUE, ORANGE, GREY, GREEN = "#0072B2", "#D55E00", "#555555", "#009E73"
NAMES = {"mu1": "μ1 (half near-expert)", "mu3": "μ3 (none near-expert)", "walk": "random walk"}
PROBLEMS = {"mice": "Labyrinth", "bus": "Buses", "borlange": "Roads", "gridworld": "Grid-world", "highway": "Highway"}


def mice(rows: Rows) -> Any:
    """Held-out score of every method, its knobs chosen on other expert trips."""
    import matplotlib.pyplot as plt

    rows = [row for row in rows if row["chosen"] == "others"]
    every = dict.fromkeys(row["method"] for row in rows)
    methods = [m for m in every if column(rows, "score", method=m).mean() > -1.2]  # the others are in the table
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 4.6), sharey=True, layout="constrained")
    for ax, experts in zip(axes, (5, 10), strict=True):
        means = {m: column(rows, "score", experts=experts, method=m) for m in methods}
        for i, m in enumerate(reversed(methods)):
            found = interval(means[m])
            based = m.startswith(("reference,", "light"))
            colour = ORANGE if m == "MESSI" else GREEN if m.startswith("MESSI") else BLUE if based else GREY
            error = np.array([[found.mean - found.low], [found.high - found.mean]])
            ax.errorbar(found.mean, i, xerr=error, fmt="o", color=colour, markersize=4, capsize=2, linewidth=1)
        ax.axvline(-0.769, color=BLUE, linewidth=0.8, linestyle="--")
        ax.axvline(-0.965, color=GREY, linewidth=0.8, linestyle=":")
        ax.set_title(f"{experts} expert trips, 500 unlabelled")
        ax.set_xlabel("held-out log-probability per step")
        ax.set_yticks(range(len(methods)), list(reversed(methods)))
        ax.set_xlim(-1.03, -0.745)
    axes[1].text(-0.771, 0.0, "all experts", color=BLUE, rotation=90, ha="right", va="bottom", fontsize=6.5)
    axes[1].text(-0.963, 0.0, "uniform", color=GREY, rotation=90, ha="left", va="bottom", fontsize=6.5)
    return figure


def choosing(rows: Rows) -> Any:
    """Mean regret of every way to choose, with its 95 % interval, one panel for each kind of problem."""
    import matplotlib.pyplot as plt

    problems = [name for name in PROBLEMS if any(row["problem"] == name for row in rows)]
    ways = list(dict.fromkeys(row["way"] for row in rows))
    figure, axes = plt.subplots(1, len(problems), figsize=(7.2, 3.4), sharey=True, layout="constrained", squeeze=False)
    figure.suptitle("regret of every way to choose")
    for ax, problem in zip(axes[0], problems, strict=True):
        some = [row for row in rows if row["problem"] == problem]
        cases = list(dict.fromkeys((row["experts"], row["source"]) for row in some))
        end = 1.1 * np.sort([row["high"] for row in some])[int(0.85 * len(some))]  # beyond it a number stands instead
        for k, case in enumerate(cases):
            found = {row["way"]: row for row in some if (row["experts"], row["source"]) == case}
            shift = 0.22 * (k - (len(cases) - 1) / 2)
            at = np.array([len(ways) - 1 - ways.index(way) - shift for way in found])
            mean, low, high = (np.array([row[name] for row in found.values()]) for name in ("regret", "low", "high"))
            label = NAMES.get(case[1], f"{case[0]:.0f} experts")
            colour = (BLUE, ORANGE, GREY)[k]
            seen = mean <= end
            ax.errorbar(mean[seen], at[seen], xerr=[(mean - low)[seen], (high - mean)[seen]], fmt="o", color=colour,
                        markersize=3, capsize=1.5, linewidth=0.9, label=label)  # fmt: skip
            for x, y in zip(mean[~seen], at[~seen], strict=True):
                ax.text(0.99 * end, y, f"{x:.3f} →", color=colour, fontsize=5, ha="right", va="center")
        ax.set_xlim(0.0, end)
        ax.set_title(PROBLEMS[problem])
        ax.set_yticks(range(len(ways)), list(reversed(ways)))
        ax.axhspan(len(ways) - 1.5, len(ways) - 0.5, color="#EEEEEE", zorder=0)
        ax.tick_params(axis="x", labelsize=6)
        ax.xaxis.set_major_locator(plt.MaxNLocator(3))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set_xlabel("nats per step" if len(cases) == 2 else "performance", fontsize=7)
        ax.legend(fontsize=6, loc="upper center", bbox_to_anchor=(0.5, -0.17), frameon=False)
    return figure


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
    drawings: dict[str, Any] = {}
    if (folder / "mice.csv").exists():
        drawings["mice"] = lambda: mice(read(folder / "mice.csv"))
    if (folder / "choosing.csv").exists():
        drawings["choosing"] = lambda: choosing(read(folder / "choosing.csv"))
    for name, make in drawings.items():
        print(save_figure(name, make, folder))


if __name__ == "__main__":
    main()
