"""Provenance of results: settings, versions, seeds, and the command that reproduces them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from messirl.app.report.common.markup import Html, row, table, tag
from messirl.app.report.common.method_style import domain_name, sort_domains
from messirl.app.report.common.number_format import plain
from messirl.app.report.common.versions import versions
from messirl.paper.experiments.paper_settings import CHOICES, QUICK, SETTINGS
from messirl.paper.experiments.training_runs import FIGURES


@dataclass(frozen=True)
class Provenance:
    """The origin of the rows of a table."""

    domains: list[str]
    figures: list[str]
    runs: int
    first_seed: int
    last_seed: int
    versions: list[str]
    commits: list[str]
    hashes: dict[str, list[str]]  # configuration of each domain

    @property
    def quick(self) -> bool:
        """True if the results are those of a quick run."""
        return any(name in QUICK and h == [QUICK[name].config_hash] for name, h in self.hashes.items())

    @property
    def stale(self) -> list[str]:
        """The domains whose settings differ from those of this version of the package."""
        known = {name: {SETTINGS[name].config_hash} for name in SETTINGS}
        for name in QUICK:
            known[name].add(QUICK[name].config_hash)
        return [name for name, h in self.hashes.items() if not set(h) <= known.get(name, set())]


def provenance(results: pa.Table) -> Provenance:
    """Return the provenance of a table of results."""

    def values(name: str, among: pa.Table = results) -> list[str]:
        return sorted(str(v) for v in pc.unique(among[name]).to_pylist())

    domains = sort_domains(values("domain"))
    seeds = pc.min_max(results["seed"]).as_py()
    return Provenance(
        domains=domains,
        figures=[f for f in FIGURES if f in values("figure")],
        runs=len(values("run")),
        first_seed=seeds["min"],
        last_seed=seeds["max"],
        versions=values("version"),
        commits=values("commit"),
        hashes={d: values("config_hash", results.filter(pc.equal(results["domain"], d))) for d in domains},
    )


def command(made: Provenance) -> str:
    """Return the command line that makes the same table."""
    settings = QUICK if made.quick else SETTINGS
    parts = ["messirl", "reproduce", *(["--quick"] if made.quick else [])]
    if set(made.domains) != set(settings):
        parts += [word for domain in made.domains for word in ("--domain", domain)]
    every = {f for name in made.domains if name in settings for f in settings[name].figures}
    if set(made.figures) != every:
        parts += [word for figure in made.figures for word in ("--figure", figure)]
    parts += ["--runs", str(made.runs), "--seed", str(made.first_seed)]
    return shlex.join(parts)


def settings_table(made: Provenance) -> Html:
    """Return the table of settings per domain."""
    head = row("domain", "λ0", "step size", "θ_max", "iterations T", "u", "ν", "domain settings", "hash", head=True)
    rows = []
    for name in made.domains:
        found = ", ".join(made.hashes[name])
        if name not in SETTINGS:
            rows.append(row(domain_name(name), *["–"] * 7, tag("code", found)))
            continue
        s = SETTINGS[name]
        own = ", ".join(
            f"{key.replace('_', ' ')} {plain(value) if isinstance(value, int | float) else value}"
            for key, value in s.arguments.items()
        )
        numbers = (s.lambda0, s.step_size, s.theta_max, s.iterations, s.u, s.nu)
        rows.append(row(domain_name(name), *(plain(v) for v in numbers), own, tag("code", found)))
    return table([head], rows, "settings")


def choices() -> Html:
    """Return the choices where the paper gives no value, with reasons."""
    return tag("dl", *(part for what, why in CHOICES.items() for part in (tag("dt", what), tag("dd", why))))


def environment(made: Provenance) -> Html:
    """Return the versions that produced the results and wrote the page."""
    rows = [
        row("results made by", f"messirl {', '.join(made.versions)}, commit {', '.join(made.commits)}"),
        row("runs and seeds", f"{made.runs} runs, seeds {made.first_seed} to {made.last_seed}"),
        row("page written with", versions()),
    ]
    return table([], rows, "environment")
