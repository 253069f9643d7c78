"""Tables of claims: the paper's statement, the verdict per solver and domain, and where the solvers differ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from messirl.app.report.common.markup import Html, join, row, table, tag
from messirl.app.report.common.method_style import MAIN, domain_name, sort_domains, style_of
from messirl.app.report.common.number_format import mean_and_interval
from messirl.paper.experiments.claim_tests import FAILS, HOLDS, UNDECIDED
from messirl.paper.experiments.curves import Interval
from messirl.paper.experiments.paper_settings import AGAINST

Row = dict[str, Any]
VERDICTS = (HOLDS, FAILS, UNDECIDED)
SIGNS = {HOLDS: "✓", FAILS: "✗", UNDECIDED: "?"}
CLASSES = {HOLDS: "holds", FAILS: "fails", UNDECIDED: "undecided"}
SOLVERS = {"paper": "paper’s steps", "exact": "exact optimum"}
OWN = "not in the paper"


def tally(claims: Sequence[Row]) -> Html:
    """Return a table that counts verdicts by domain and solver: on the paper's claims, then on our own."""
    if not claims:
        return tag("p", "No claim could be decided from these results.")
    solvers = [solver for solver in SOLVERS if any(c["solver"] == solver for c in claims)]
    above = tag(
        "tr", tag("td"), *(tag("th", SOLVERS[s], colspan=str(len(VERDICTS)), scope="colgroup") for s in solvers)
    )
    head = row("The paper’s claims", *(f"{SIGNS[v]} {v}" for _ in solvers for v in VERDICTS), head=True)
    rows = _counts([c for c in claims if c["where"] != OWN], solvers)
    asked = _counts([c for c in claims if c["where"] == OWN], solvers)
    if asked:
        wide = str(1 + len(solvers) * len(VERDICTS))
        rows.append(tag("tr", tag("th", "Is MESSI(μ1) better than the other baselines?", colspan=wide, class_="part")))
    return table([above, head], rows + asked, "counts")


def _counts(claims: Sequence[Row], solvers: Sequence[str]) -> list[Html]:
    places = {
        d: "Between domains" if AGAINST in d else domain_name(d) for d in sort_domains([c["domain"] for c in claims])
    }
    rows = []
    for place in dict.fromkeys(places.values()):
        here = [(c["solver"], c["verdict"]) for c in claims if places[c["domain"]] == place]
        rows.append(row(place, *(str(here.count((s, v))) for s in solvers for v in VERDICTS)))
    return rows


def sentence(claims: Sequence[Row]) -> str:
    """Return the summary of verdicts in words."""
    parts = []
    for solver, words in (("paper", "With the paper’s fixed steps"), ("exact", "At the exact optimum")):
        here = [c["verdict"] for c in claims if c["solver"] == solver and c["where"] != OWN]
        if here:
            count = {v: here.count(v) for v in VERDICTS}
            parts.append(
                f"{words}, {count[HOLDS]} of {len(here)} verdicts on the paper’s claims are “holds”, "
                f"{count[FAILS]} “does not hold” and {count[UNDECIDED]} “undecided”."
            )
    return " ".join(parts)


def tables(claims: Sequence[Row]) -> Html:
    """Return one table per section of the paper, with a column per domain and solver."""
    out = []
    for where, group in groupby(_grouped(claims), key=lambda c: str(c["where"])):
        rows = list(group)
        columns = [
            (domain, solver)
            for domain in sort_domains(sorted({c["domain"] for c in rows}))
            for solver in SOLVERS
            if any(c["domain"] == domain and c["solver"] == solver for c in rows)
        ]
        out.append(tag("h3", *_heading(where)))
        head = row("Claim", *(join([tag("b", domain_name(d)), tag("br"), SOLVERS[s]]) for d, s in columns), head=True)
        body = [_claim([c for c in rows if c["id"] == one], columns) for one in dict.fromkeys(c["id"] for c in rows)]
        out.append(table([head], body, "claims"))
    return join(out)


def differences(claims: Sequence[Row]) -> Html:
    """Return a table of claims on which the two solvers disagree."""
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for claim in claims:
        found.setdefault((claim["id"], claim["domain"]), {})[claim["solver"]] = claim
    both = [pair for pair in found.values() if set(SOLVERS) <= set(pair)]
    differ = [pair for pair in both if pair["paper"]["verdict"] != pair["exact"]["verdict"]]
    opposite = [pair for pair in differ if UNDECIDED not in (pair["paper"]["verdict"], pair["exact"]["verdict"])]
    open_ = [pair for pair in differ if pair not in opposite]
    if not both:
        return tag("p", "These results are of one solver only, so there is nothing to compare.")
    out = [
        tag(
            "p",
            f"The paper’s solver takes a fixed number of fixed steps; the exact solver finds the optimum of the same "
            f"objective. Where their verdicts differ, the step size matters, not the method. They differ in "
            f"{len(differ)} of {len(both)} cases: in {len(opposite)} the verdicts are opposite, in {len(open_)} one "
            f"solver decides and the other does not.",
        )
    ]
    for title, pairs in (("Opposite verdicts", opposite), ("Decided by one solver only", open_)):
        if pairs:
            head = row(title, "Domain", *SOLVERS.values(), head=True)
            out.append(table([head], [_difference(pair) for pair in pairs], "differences"))
    return join(out)


def words(sentence: str) -> str:
    """Replace internal names of methods by their labels."""
    for method in MAIN:
        if method != style_of(method).label and "-" in method:
            sentence = sentence.replace(method, style_of(method).label)
    sentence = re.sub(r"(?<![-\w])MaxEnt(?![-\w])", style_of("MaxEnt").label, sentence)  # except in η-EM-MaxEnt
    return re.sub(r"(?<=\d)%", " %", sentence.replace("at ν = no point", "at no ν"))


def _grouped(claims: Sequence[Row]) -> list[Row]:
    """Sort claims by their section of the paper, with our own at the end."""
    places = list(dict.fromkeys(c["where"] for c in claims))
    return sorted(claims, key=lambda c: (c["where"] == OWN, places.index(c["where"])))


def _heading(where: str) -> list[Html | str]:
    if where == OWN:
        return ["Further questions ", tag("small", where)]
    section, _, title = where.partition(", ")
    return [f"{title} ", tag("small", section)] if title else [where[:1].upper() + where[1:]]


def _claim(rows: Sequence[Row], columns: Sequence[tuple[str, str]]) -> Html:
    notes = {c["note"] for c in rows}
    shared = notes.pop() if len(notes) == 1 else ""
    first = rows[0]
    what = [
        tag("span", words(first["text"]), class_="text"),
        tag("span", f"Test: {words(first['test'])}", class_="note"),
    ]
    if shared:
        what.append(tag("span", f"Number: {words(shared)}", class_="note"))
    cells = []
    for domain, solver in columns:
        label = f"{domain_name(domain)}, {SOLVERS[solver]}"
        here = [c for c in rows if c["domain"] == domain and c["solver"] == solver]
        if here:
            cells.append(tag("td", _finding(here[0], not shared), data_label=label))
        else:
            cells.append(tag("td", "–", class_="none", data_label=label))
    return tag("tr", tag("th", *what, scope="row"), *cells)


def _finding(claim: Row, with_note: bool) -> Html:
    parts = [_verdict(claim["verdict"])]
    if claim["evidence"] is not None:
        mean, around = mean_and_interval(Interval(**claim["evidence"]), signed=True)
        parts += [tag("span", mean, class_="number"), tag("span", around, class_="number")]
    if with_note and claim["note"]:
        parts.append(tag("span", words(claim["note"]), class_="note"))
    return join(parts)


def _verdict(verdict: str) -> Html:
    return tag("span", f"{SIGNS.get(verdict, '')} {verdict}", class_=f"verdict {CLASSES.get(verdict, 'undecided')}")


def _difference(pair: dict[str, Row]) -> Html:
    claim = pair["paper"]
    return row(words(claim["text"]), domain_name(claim["domain"]), *(_verdict(pair[s]["verdict"]) for s in SOLVERS))
