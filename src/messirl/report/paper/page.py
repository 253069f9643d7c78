"""The report of a reproduction: figures into a folder, and one page that says what holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from messirl.experiments.curves import LEVEL, Curves, interval
from messirl.report.kit.digits import mean_and_interval
from messirl.report.kit.images import write_bytes
from messirl.report.kit.markup import Html, join, row, table, tag
from messirl.report.kit.page import contents, document, section
from messirl.report.kit.style import EXACT, LOOKS, domain_name, look
from messirl.report.paper import verdicts
from messirl.report.paper.captions import READING
from messirl.report.paper.gallery import gallery
from messirl.report.paper.provenance import Provenance, choices, command, environment, provenance, settings_table

TITLE = "MESSI, reproduced"
FEW = 20  # runs below which the page warns
SECTIONS = {
    "summary": "Summary",
    "results": "Final performance",
    "claims": "Claims",
    "steps": "Artefacts of the step size",
    "figures": "Figures",
    "settings": "Settings",
    "environment": "Environment",
    "rerun": "How to run it again",
}


def write_report(results: pa.Table, claims: Sequence[dict[str, Any]], out: Path) -> Path:
    """Draw the figures into out/figures and write out/report.html; returns its path."""
    curves, made = Curves(results), provenance(results)
    pictures = gallery(curves, made.domains, out / "figures")
    body = join(
        [
            tag("header", tag("h1", TITLE), *_lead(made), contents(SECTIONS)),
            _section("summary", *_summary(claims)),
            _section("results", _results_note(made), _results(curves, made)),
            _section("claims", _claims_note(), verdicts.tables(claims)),
            _section("steps", verdicts.differences(claims)),
            _section("figures", tag("p", READING), pictures),
            _section("settings", *_settings(made)),
            _section("environment", environment(made)),
            _section("rerun", *_rerun(made)),
        ]
    )
    page = out / "report.html"
    write_bytes(page, document(TITLE, body).encode())
    return page


def _section(anchor: str, *content: Html) -> Html:
    return section(anchor, SECTIONS[anchor], *content)


def _lead(made: Provenance) -> list[Html]:
    domains = f"{_many(len(made.domains), 'domain')}: {_listed([domain_name(d) for d in made.domains])}"
    out = [
        tag(
            "p",
            "The experiments of “Maximum Entropy Semi-Supervised Inverse Reinforcement Learning” (Audiffren, Valko, "
            f"Lazaric and Ghavamzadeh, IJCAI 2015), run again over {_runs(made)} in {domains}. Each sentence of its "
            "results that can be true or false is tested here, with the paper’s own solver and at the exact optimum of "
            "the same objective.",
            class_="lead",
        )
    ]
    if made.runs < FEW:
        out.append(
            tag(
                "p",
                f"This is a first look: with {_runs(made)} intervals are wide and many claims stay undecided. "
                "The paper averages 50 runs.",
                class_="warning",
            )
        )
    return out


def _summary(claims: Sequence[dict[str, Any]]) -> list[Html]:
    return [tag("p", verdicts.sentence(claims)), verdicts.tally(claims)]


def _results_note(made: Provenance) -> Html:
    return tag(
        "p",
        f"Mean over {_runs(made)} at the settings below, with its {100 * LEVEL:g} % interval; higher is better. Each "
        "interval is of one mean by itself. Methods are compared run by run, in the claims.",
    )


def _results(curves: Curves, made: Provenance) -> Html:
    """Every method at the end of its training, and at the optimum."""
    columns = [
        (domain, suffix, words)
        for domain in made.domains
        for suffix, words in (("", verdicts.SOLVERS["paper"]), (EXACT, verdicts.SOLVERS["exact"]))
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


def _claims_note() -> Html:
    return tag(
        "p",
        "A claim holds where the 95 % interval of the difference, paired over runs, says so; it does not hold where "
        "the interval says the opposite; in between it is undecided. Under each verdict stand the mean difference and "
        "its interval.",
    )


def _settings(made: Provenance) -> list[Html]:
    points = "fewer points than the paper’s figures, for a first look" if made.quick else "all points of the sweeps"
    out = [
        tag(
            "p",
            f"These results have {points}. The paper gives θ_max = 500, T = 100 iterations, one expert trajectory, "
            "u = 20, ν = 0.5, λ0 = 0.05 and 50 runs.",
        ),
        settings_table(made),
    ]
    if made.stale:
        stale = _listed([domain_name(d) for d in made.stale])
        out.append(
            tag(
                "p",
                f"The settings shown are those of this installation. The results of {stale} were made "
                "with others, as their hash says.",
                class_="warning",
            )
        )
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


def _runs(made: Provenance) -> str:
    return _many(made.runs, "run")


def _many(n: int, what: str) -> str:
    return f"{n} {what}{'s' if n != 1 else ''}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
