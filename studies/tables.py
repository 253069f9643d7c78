"""Keeps a reproduction in results/, and writes the tables of docs/reproduction.md from there; a test compares the two.

python -m studies.tables [FOLDER], the --out of a whole `messirl reproduce`. Of every training its end is kept.
"""

from __future__ import annotations

import csv
import json
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PAGE, RESULTS = Path("docs/reproduction.md"), Path("results")
DOMAINS = {"highway": "highway", "gridworld": "gridworld", "pit": "pit", "highway-far": "highway, two rows ahead"}
PAPERS = ("highway", "gridworld", "pit")
SOLVERS = {"steps": ("", "100"), "optimum": ("/exact", "400")}  # the mark of a method, and the last iteration
METHODS = {
    "MaxEnt": "MaxEnt-IRL",
    "MESSIMAX": "MESSIMAX",
    "MESSI-mu1": "MESSI(μ1)",
    "MESSI-mu2": "MESSI(μ2)",
    "MESSI-mu3": "MESSI(μ3)",
    "Ridge": "plain L2",
    "RidgeStd": "standardised L2",
    "Complete": "complete graph",
    "Pooling": "pooling",
}
WORDS = {"holds": "holds", "undecided": "?", "does not hold": "**no**"}


def keep(folder: Path, results: Path = RESULTS) -> None:
    """Copy what results/ holds of a reproduction."""
    table = pq.read_table(folder / "results.parquet").drop(["objective"])
    traced = np.isin(table["figure"].to_numpy(), ("iterations", "em"))  # these have a row for every iteration
    ends = table.filter(pa.array(~traced | (table["x"].to_numpy() >= float(SOLVERS["steps"][1]))))
    for domain in DOMAINS:
        these = ends.filter(pa.array(ends["domain"].to_numpy() == domain))
        pq.write_table(these, results / f"{domain}.parquet", compression="zstd")
    for name in ("summary.csv", "claims.json"):
        shutil.copyfile(folder / name, results / name)
    for picture in sorted((folder / "figures").glob("*.png")):
        shutil.copyfile(picture, results / "figures" / picture.name)


def main_comparison(summary: Iterable[dict[str, str]]) -> list[str]:
    """Final performance of every method, mean and 95 % interval, with both solvers."""
    ends = {
        (row["domain"], row["method"], row["x"]): "{:.4f} [{:.4f}, {:.4f}]".format(
            *(float(row[name]) for name in ("performance", "low", "high"))
        )
        for row in summary
        if row["figure"] == "iterations"
    }
    columns = [(domain, solver) for domain in PAPERS for solver in SOLVERS]
    lines = head(["method", *(f"{domain}, {solver}" for domain, solver in columns)])
    for method, label in METHODS.items():
        cells = [ends[domain, method + SOLVERS[solver][0], SOLVERS[solver][1]] for domain, solver in columns]
        lines.append(row([label, *cells]))
    return lines


def claim_by_claim(claims: Iterable[dict[str, Any]]) -> list[str]:
    """Verdicts with the paper's steps / at the optimum; – where a claim is not asked."""
    found: dict[str, dict[tuple[str, str], str]] = {}
    for claim in claims:
        if claim["domain"] in DOMAINS:
            found.setdefault(claim["text"], {})[claim["domain"], claim["solver"]] = WORDS[claim["verdict"]]
    lines = head(["claim", *DOMAINS.values()])
    for text, verdicts in found.items():
        cells = []
        for domain in DOMAINS:
            both = [verdicts.get((domain, solver)) for solver in ("paper", "exact")]
            cells.append(" / ".join(word or "–" for word in both) if any(both) else "")
        lines.append(row([text, *cells]))
    return lines


def order(claims: Iterable[dict[str, Any]]) -> list[str]:
    """MESSIMAX > MESSI(μ1) > MaxEnt with the paper's steps, as paired differences."""
    steps = {(claim["id"], claim["domain"]): claim["evidence"] for claim in claims if claim["solver"] == "paper"}
    lines = []
    for domain in PAPERS:
        above, ahead = (
            "{mean:+.4f} [{low:+.4f}, {high:+.4f}]".format(**steps[name, domain])
            for name in ("max-above-mu1", "mu1-beats-maxent")
        )
        lines.append(f"- {domain}: MESSIMAX − MESSI(μ1) {above}, MESSI(μ1) − MaxEnt {ahead}")
    return lines


def tables(results: Path = RESULTS) -> dict[str, list[str]]:
    """Every table of the page, by the first words of its first line."""
    with open(results / "summary.csv", newline="", encoding="utf-8") as file:
        first = main_comparison(csv.DictReader(file))
    claims = json.loads((results / "claims.json").read_text(encoding="utf-8"))
    return {
        "| method | highway, steps |": first,
        "- highway: MESSIMAX": order(claims),
        "| claim |": claim_by_claim(claims),
    }


def filled(page: str, results: Path = RESULTS) -> str:
    """The page with its tables as the results have them."""
    return with_tables(page, tables(results))


def with_tables(page: str, tables: dict[str, list[str]]) -> str:
    """A page with other lines in the place of each table, which is known by how its first line begins."""
    lines = page.splitlines()
    for opening, table in tables.items():
        begin = next(i for i, line in enumerate(lines) if line.startswith(opening))
        end = next(i for i in range(begin, len(lines)) if not lines[i])
        lines[begin:end] = table
    return "\n".join(lines) + "\n"


def head(names: list[str]) -> list[str]:
    """The first two lines of a table."""
    return [row(names), "|" + "---|" * len(names)]


def row(cells: list[str]) -> str:
    """A line of a table."""
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    for given in sys.argv[1:]:
        keep(Path(given))
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
