"""Report of a reproduction: figures in a folder, and a page with the verdict on every claim of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from messirl._text import join_names
from messirl.app.report.common.html_page import opening, write_page
from messirl.app.report.common.markup import Html, join, row, table, tag
from messirl.app.report.common.method_style import STYLES, domain_name, style_of
from messirl.app.report.common.number_format import count_with_noun, mean_and_interval
from messirl.app.report.paper import claim_tables, summary
from messirl.app.report.paper.captions import READING
from messirl.app.report.paper.gallery import file_names, gallery
from messirl.app.report.paper.provenance import Provenance, choices, command, environment, provenance, settings_table
from messirl.paper.experiments.curves import LEVEL, Curves, interval
from messirl.paper.experiments.paper_settings import EXACT

TITLE = "MESSI, reproduced"
FEW = 20  # runs below which the page warns
DECIDING = (
    "A claim holds if the 95 % interval of its difference, paired by run, supports it. It does not hold if the "
    "interval supports the opposite; otherwise it is undecided. Below each verdict are the mean difference and its "
    "interval."
)


def write_report(results: pa.Table, claims: Sequence[dict[str, Any]], out: Path) -> Path:
    """Draw the figures into out/figures, write out/report.html and return its path."""
    curves, made = Curves(results), provenance(results)
    pictures = gallery(curves, made.domains, out / "figures")
    parts = {
        "losses": ("Where MESSI does not significantly help", summary.losses_table(curves, made.domains)),
        "summary": (
            "Summary of the paper’s claims",
            [tag("p", claim_tables.sentence(claims)), claim_tables.tally(claims)],
        ),
        "results": ("Final performance", [_results_note(made), _results(curves, made)]),
        "claims": ("Claims", [tag("p", DECIDING), claim_tables.tables(claims)]),
        "steps": ("Artefacts of the step size", [claim_tables.differences(claims)]),
        "figures": ("Figures", [tag("p", READING), pictures]),
        "settings": ("Settings", _settings(made)),
        "environment": ("Environment", [environment(made)]),
        "rerun": ("How to run it again", _rerun(made)),
    }
    shown = summary.panels(curves, file_names(made.domains), out / "figures")
    first = opening(summary.sentences(curves, made.domains), shown, _lead(made), _few(made), summary.roles())
    return write_page(out / "report.html", TITLE, "", first, parts)


def _lead(made: Provenance) -> str:
    runs, domains = count_with_noun(made.runs, "run"), join_names([domain_name(d) for d in made.domains])
    return (
        "The experiments of “Maximum Entropy Semi-Supervised Inverse Reinforcement Learning” (Audiffren, Valko, "
        f"Lazaric and Ghavamzadeh, IJCAI 2015), repeated with {runs} in "
        f"{count_with_noun(len(made.domains), 'domain')}: "
        f"{domains}. Every testable claim of its results is tested here, with the paper’s own solver and at the "
        "exact optimum of the same objective."
    )


def _few(made: Provenance) -> list[str]:
    if made.runs >= FEW:
        return []
    runs = count_with_noun(made.runs, "run")
    few = f"With {runs} only, intervals are wide and many claims are undecided."
    return [f"{few} The paper averages 50 runs."]


def _results_note(made: Provenance) -> Html:
    return tag(
        "p",
        f"Mean over {count_with_noun(made.runs, 'run')} at the settings below, with its {100 * LEVEL:g} % "
        "interval; higher is "
        "better. Each interval is of a single mean. Comparisons of methods, paired by run, are in the claims.",
    )


def _results(curves: Curves, made: Provenance) -> Html:
    """Return the table of every method at the end of its training, and at the optimum."""
    columns = [
        (domain, suffix, words)
        for domain in made.domains
        for suffix, words in (("", claim_tables.SOLVERS["paper"]), (EXACT, claim_tables.SOLVERS["exact"]))
        if any((domain, "iterations", m + suffix) in curves for m in STYLES)
    ]
    if not columns:
        return tag("p", "These results have no performance by iteration.")
    head = row("", *(join([tag("b", domain_name(d)), tag("br"), words]) for d, _, words in columns), head=True)
    rows = []
    for method in STYLES:
        cells: list[Html | str] = []
        for domain, suffix, _ in columns:
            key = (domain, "iterations", method + suffix)
            if key in curves:
                mean, around = mean_and_interval(interval(curves[key].last))
                cells.append(join([mean, tag("br"), tag("span", around, class_="note")]))
            else:
                cells.append("–")
        if any(cell != "–" for cell in cells):
            rows.append(row(style_of(method).label, *cells))
    return table([head], rows, "results")


def _settings(made: Provenance) -> list[Html]:
    points = "fewer points than the paper’s figures" if made.quick else "all points of the sweeps"
    first = (
        f"These results have {points}. The paper gives θ_max = 500, T = 100 iterations, one expert trajectory, u = 20, "
        "ν = 0.5, λ0 = 0.05 and 50 runs."
    )
    out = [tag("p", first), settings_table(made)]
    if made.stale:
        stale = (
            f"The settings shown are those of this installation. The results of "
            f"{join_names([domain_name(d) for d in made.stale])} were made with other settings: their hash differs."
        )
        out.append(tag("p", stale, class_="warning"))
    return [*out, tag("h3", "Settings that the paper does not give"), choices()]


def _rerun(made: Provenance) -> list[Html]:
    return [
        tag("p", "In the source folder, with Python 3.11 or newer:"),
        tag("pre", tag("code", f"make venv\n.venv/bin/{command(made)}")),
        tag(
            "p",
            "The same seed gives the same table, whatever the number of jobs. An interrupted run is resumed by the "
            "same command. Every number here is read from results.parquet and claims.json beside this page.",
        ),
    ]
