"""The view of the paper's figures: curves of a folder of `messirl reproduce`, and claims with their evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from messirl.app.lab.json_views import rounded
from messirl.app.lab.requests import RequestError
from messirl.app.report.common.method_style import domain_name, eta_of, sort_domains, style_of
from messirl.app.report.paper.captions import MEASURES
from messirl.paper.experiments.claims import evaluate_claims
from messirl.paper.experiments.curves import Curve, Curves, Interval, format_interval, interval
from messirl.paper.experiments.paper_settings import EXACT, SETTINGS

FIGURES = {  # title, label of the x axis, whether it is logarithmic
    "iterations": ("Iterations", "iterations", False),
    "unlabelled": ("Number of unlabelled trajectories", "unlabelled trajectories, u", True),
    "nu": ("Share of good trajectories", "share of near-expert trajectories, ν", False),
    "lambda": ("Strength of the penalty", "λ0", True),
    "em": ("Against η-EM-MaxEnt", "iterations", False),
}
COLUMNS = ("domain", "figure", "method", "x", "run", "performance", "theta_norm")
ROWS = 3_000_000  # maximum rows of a table


def results_view(folder: Path) -> dict[str, Any]:
    """Return every curve of a results folder with its 95 % band, and every claim."""
    try:
        table = pa.concat_tables([_read(folder / name) for name in _files(folder)])
        curves = Curves(table)
    except RequestError:
        raise
    except (pa.ArrowException, KeyError, OSError, ValueError) as error:
        raise RequestError(f"the folder contains no table of messirl reproduce: {error}") from None
    domains = sort_domains(curves.domains)
    if not domains:
        raise RequestError(
            "the table of this reproduction has no rows yet: open it again when messirl reproduce has finished"
        )
    return {
        "domains": [{"key": domain, "title": domain_name(domain)} for domain in domains],
        "measures": {
            domain: MEASURES.get(domain.removesuffix("-far"), "as the domain measures it") for domain in domains
        },
        "figures": [
            {
                "domain": domain,
                "figure": name,
                "title": title,
                "along": along,
                "log": log,
                "lines": _lines(curves, domain, name),
            }
            for domain in domains
            for name, (title, along, log) in FIGURES.items()
            if curves.methods(domain, name)
        ],
        "claims": _claims(folder / "claims.json", table),
    }


def _files(folder: Path) -> list[str]:
    """Return the files of the table of a reproduction: one file, or one per domain."""
    if (folder / "results.parquet").is_file():
        return ["results.parquet"]
    return [name for name in (f"{domain}.parquet" for domain in SETTINGS) if (folder / name).is_file()]


def _read(path: Path) -> pa.Table:
    file = pq.ParquetFile(path)
    if file.metadata.num_rows > ROWS:
        raise RequestError(f"{path.name} has {file.metadata.num_rows:,} rows: this page reads at most {ROWS:,}")
    return file.read(columns=list(COLUMNS))


def _lines(curves: Curves, domain: str, figure: str) -> list[dict[str, Any]]:
    methods = curves.methods(domain, figure)
    etas = tuple(sorted({eta for eta in map(eta_of, methods) if eta is not None}))
    out = []
    for method in methods:
        seen, curve = style_of(method, etas), curves[domain, figure, method]
        exact = method.endswith(EXACT)
        colour = "#808080" if seen.colour == "#000000" else seen.colour  # black is invisible in dark mode
        label, dash, own = seen.label, "solid", method.removesuffix(EXACT)
        if eta_of(own) is not None:  # EM has two mixtures in one figure: the label names the mixture, as for MESSI
            label, dash = (f"{label}(μ2)", "dot") if own.endswith("-mu2") else (f"{label}(μ1)", dash)
        out.append({"label": label, "colour": colour, "dash": dash, "exact": exact, **_band(curve)})
    return out


def _band(curve: Curve) -> dict[str, Any]:
    found = [interval(row) for row in curve.performance]
    finite = [np.isfinite([one.low, one.high]).all() for one in found]
    return {
        "x": rounded(curve.x),
        "mean": rounded([one.mean for one in found]),
        "low": rounded([one.low if good else one.mean for one, good in zip(found, finite, strict=True)]),
        "high": rounded([one.high if good else one.mean for one, good in zip(found, finite, strict=True)]),
        "runs": int(curve.performance.shape[1]),
    }


def _claims(file: Path, table: pa.Table) -> list[dict[str, Any]]:
    """Return the saved verdicts on the claims, or test the claims on the table if the file is missing or invalid."""
    try:
        return [_claim(row) for row in json.loads(file.read_text(encoding="utf-8"))]
    except (OSError, ValueError, KeyError, TypeError):
        return [_claim(row) for row in evaluate_claims(table)]


def _claim(row: dict[str, Any]) -> dict[str, Any]:
    evidence = row["evidence"]
    kept = {name: str(row[name]) for name in ("text", "where", "test", "solver", "verdict", "note")}
    said = "" if evidence is None else f"{format_interval(Interval(**evidence))}, {evidence['n']} runs"
    return kept | {"domain": str(row["domain"]), "domain_title": domain_name(str(row["domain"])), "evidence": said}
