"""The report of a reproduction: figures into a folder, and one page that says what holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from messirl._text import listed
from messirl.app.report.common.html_page import opening, write_page
from messirl.app.report.common.markup import Html, join, row, table, tag
from messirl.app.report.common.method_style import LOOKS, domain_name, look
from messirl.app.report.common.number_format import many, mean_and_interval
from messirl.app.report.paper import claim_tables, summary
from messirl.app.report.paper.captions import READING
from messirl.app.report.paper.gallery import file_names, gallery
from messirl.app.report.paper.provenance import Provenance, choices, command, environment, provenance, settings_table
from messirl.paper.experiments.curves import LEVEL, Curves, interval
from messirl.paper.experiments.paper_settings import EXACT

TITLE = "MESSI, reproduced"
FEW = 20  # runs below which the page warns that they are few
DECIDING = (
    "A claim holds where the 95 % interval of the difference, paired over runs, says so; it does not hold where the "
    "interval says the opposite; in between it is undecided. Under each verdict stand the mean difference and its "
    "interval."
)


def write_report(results: pa.Table, claims: Sequence[dict[str, Any]], out: Path) -> Path:
    """Draw the figures into out/figures and write out/report.html; returns its path."""
    curves, made = Curves(results), provenance(results)
    pictures = gallery(curves, made.domains, out / "figures")
    parts = {
        "losses": ("Where it does not clearly help", summary.where_not(curves, made.domains)),
        "summary": (
            "The paper’s claims in brief",
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
    runs, domains = many(made.runs, "run"), listed([domain_name(d) for d in made.domains])
    return (
        "The experiments of “Maximum Entropy Semi-Supervised Inverse Reinforcement Learning” (Audiffren, Valko, "
        f"Lazaric and Ghavamzadeh, IJCAI 2015), run again over {runs} in {many(len(made.domains), 'domain')}: "
        f"{domains}. Each sentence of its results that can be true or false is tested here, with the paper’s own "
        "solver and at the exact optimum of the same objective."
    )


def _few(made: Provenance) -> list[str]:
    if made.runs >= FEW:
        return []
    runs = many(made.runs, "run")
    few = f"This is a first look: with {runs} intervals are wide and many claims stay undecided."
    return [f"{few} The paper averages 50 runs."]


def _results_note(made: Provenance) -> Html:
    return tag(
        "p",
        f"Mean over {many(made.runs, 'run')} at the settings below, with its {100 * LEVEL:g} % interval; higher is "
        "better. Each interval is of one mean by itself. Methods are compared run by run, in the claims.",
    )


def _results(curves: Curves, made: Provenance) -> Html:
    """Every method at the end of its training, and at the optimum."""
    columns = [
        (domain, suffix, words)
        for domain in made.domains
        for suffix, words in (("", claim_tables.SOLVERS["paper"]), (EXACT, claim_tables.SOLVERS["exact"]))
        if any((domain, "iterations", m + suffix) in curves for m in LOOKS)
    ]
    if not columns:
        return tag("p", "These results have no figure of iterations.")
    head = row("", *(join([tag("b", domain_name(d)), tag("br"), words]) for d, _, words in columns), head=True)
    rows = []
    for method in LOOKS:
        cells: list[Html | str] = []
        for domain, suffix, _ in columns:
            key = (domain, "iterations", method + suffix)
            if key in curves:
                mean, around = mean_and_interval(interval(curves[key].last))
                cells.append(join([mean, tag("br"), tag("span", around, class_="note")]))
            else:
                cells.append("–")
        if any(cell != "–" for cell in cells):
            rows.append(row(look(method).label, *cells))
    return table([head], rows, "results")


def _settings(made: Provenance) -> list[Html]:
    points = "fewer points than the paper’s figures, for a first look" if made.quick else "all points of the sweeps"
    first = (
        f"These results have {points}. The paper gives θ_max = 500, T = 100 iterations, one expert trajectory, u = 20, "
        "ν = 0.5, λ0 = 0.05 and 50 runs."
    )
    out = [tag("p", first), settings_table(made)]
    if made.stale:
        stale = (
            f"The settings shown are those of this installation. The results of "
            f"{listed([domain_name(d) for d in made.stale])} were made with others, as their hash says."
        )
        out.append(tag("p", stale, class_="warning"))
    return [*out, tag("h3", "Where the paper is silent"), choices()]


def _rerun(made: Provenance) -> list[Html]:
    return [
        tag("p", "In the source folder, with Python 3.11 or newer:"),
        tag("pre", tag("code", f"make venv\n.venv/bin/{command(made)}")),
        tag(
            "p",
            "The same seed gives the same table, whatever the number of jobs. Stopped at any moment, the same command "
            "goes on where it was. Every number here is read from results.parquet and claims.json beside this page.",
        ),
    ]
