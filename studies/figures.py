"""Draws the studies' figures from their tables: python -m studies.figures [FOLDER]."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np

from messirl.experiments.curves import interval
from studies.common import Rows, column, save_figure

BLUE, ORANGE, GREY, GREEN = "#0072B2", "#D55E00", "#555555", "#009E73"
NAMES = {"mu1": "μ1 (half near-expert)", "mu3": "μ3 (none near-expert)", "walk": "random walk"}


def read(path: Path) -> Rows:
    """A table; what looks like a number is one."""
    with open(path, newline="", encoding="utf-8") as file:
        return [{k: _number(v) for k, v in row.items()} for row in csv.DictReader(file)]


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


def safety(tables: dict[str, Rows]) -> Any:
    """Gain over MaxEnt of MESSI at every λ0 and of what was selected, for good and bad unlabelled sets."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(tables), figsize=(7.2, 2.8), layout="constrained", squeeze=False)
    for ax, (domain, rows) in zip(axes[0], tables.items(), strict=True):
        base = column(rows, "performance", source="mu1", method="MaxEnt")
        lambdas = sorted({row["lambda0"] for row in rows if row["method"] == "MESSI"})
        for k, (source, colour) in enumerate(zip(NAMES, (BLUE, ORANGE, GREY), strict=True)):
            ours = [column(rows, "performance", source=source, method="MESSI", lambda0=x) for x in lambdas]
            found = [interval(one - base) for one in ours]
            mean, low, high = ([getattr(f, name) for f in found] for name in ("mean", "low", "high"))
            ax.plot(lambdas, mean, color=colour, marker="o", linewidth=1.2, label=f"MESSI, {NAMES[source]}")
            ax.fill_between(lambdas, low, high, color=colour, alpha=0.12, linewidth=0)
            chosen = interval(column(rows, "performance", source=source, method="selected") - base)
            error = np.array([[chosen.mean - chosen.low], [chosen.high - chosen.mean]])
            at = lambdas[-1] * (3.0 + 2.2 * k)
            ax.errorbar(at, chosen.mean, yerr=error, fmt="s", color=colour, capsize=2, markersize=5)
        ax.axhline(0.0, color="black", linewidth=0.8, linestyle="--")
        ax.set_xscale("log")
        ticks = [0.01, 0.1, 1.0]
        ax.set_xticks([*ticks, lambdas[-1] * 5.2], [*(f"{x:g}" for x in ticks), "selected"])
        ax.set_xticks([], minor=True)
        ax.set_title({"gridworld": "Grid-world"}.get(domain, domain.capitalize()))
        ax.set_xlabel("λ0")
    axes[0][0].set_ylabel("gain over MaxEnt-IRL")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
    drawings: dict[str, Any] = {}
    if (folder / "mice.csv").exists():
        drawings["mice"] = lambda: mice(read(folder / "mice.csv"))
    tables = {d: folder / f"safety-{d}.csv" for d in ("gridworld", "highway")}
    tables = {d: path for d, path in tables.items() if path.exists()}
    if tables:
        drawings["safety"] = lambda: safety({d: read(path) for d, path in tables.items()})
    for name, make in drawings.items():
        print(save_figure(name, make, folder))


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


if __name__ == "__main__":
    main()
