"""The page of a diagnosis, which says whether the unlabelled trajectories help."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from messirl._numbers import whole_per_cent
from messirl._types import Ints
from messirl.report.fit import diagnosis_figures as figures, tables
from messirl.report.fit.groups import groups_section
from messirl.report.kit.digits import as_sentence, fixed, rounded, score, share
from messirl.report.kit.dots import BETTER, gains_figure
from messirl.report.kit.glossary import linked
from messirl.report.kit.markup import Html, join, row, table, tag
from messirl.report.kit.names import named
from messirl.report.kit.page import drawn, opening, rerun, write_page, written_with
from messirl.workflow.record import DiagnosisRecord
from messirl.workflow.sentences import plain_names

SHOWN = 10  # rows of each table
HEAVIEST = 4  # features of a direction


def write_diagnosis_report(record: DiagnosisRecord, out: Path) -> Path:
    """Draw the figures into out/figures and write out/report.html; returns its path."""
    folder = out / "figures"
    parts = {
        "verdict": ("Do they help?", _verdict(record)),
        "groups": ("Which groups", groups_section(record.by, folder)),
        "trajectories": ("Which ones", _trajectories(record, folder)),
        "directions": ("What the penalty decides", _directions(record, folder)),
        "settings": ("Settings", [tables.words_table(record.settings), written_with()]),
        "rerun": ("How to run it again", rerun(record.command)),
    }
    lead = (
        f"MESSI with λ0 = {record.lambda0:g} was fitted to {record.counts.get('expert', 0):,} expert and "
        f"{len(record.ids):,} unlabelled trajectories. Whether these help is judged by what the best choice of method "
        "gains from them; who they are and what they do, by this fit."
    )
    warned = tables.with_plain_names(record.warnings, record.features)
    first = opening(record.in_words, _pictures(record, folder), lead, warned)
    return write_page(out / "report.html", record.title, "diagnosis", first, parts)


def _pictures(record: DiagnosisRecord, folder: Path) -> list[Html]:
    """What held-out experts gain from them, and how much they look like the expert's."""
    found, shown = record.diagnosis, list[Html]()
    if found.use is not None:
        caption = (
            f"Did they help? What held-out experts gain with {found.use.using} over {found.use.alone}, with its 95 % "
            "interval."
        )
        rows = [("with them", found.use.gain)]
        shown += drawn("use", partial(gains_figure, rows, BETTER), folder, caption, small=True)
    caption = (
        "Likeness. How much better each unlabelled trajectory is explained by what the experts alone teach than by "
        "chance; blue ones are above zero. The dashed line is where held-out experts are."
    )
    beyond = figures.beyond(record) if np.isfinite(found.likeness.unlabelled).any() else 0
    if beyond:
        caption += f" Far outside, and drawn at the edge: {beyond:,}."
    return shown + drawn("likeness", partial(figures.likeness_figure, record), folder, caption, small=True)


def _verdict(record: DiagnosisRecord) -> list[Html]:
    """The reasons for the verdict, but for the one that the page begins with."""
    found = record.diagnosis
    first = None if found.use is None else found.use.sentence
    return [tag("ul", *(tag("li", linked(f"{as_sentence(text)}.")) for text in found.evidence if text != first))]


def _trajectories(record: DiagnosisRecord, folder: Path) -> list[Html]:
    """Rankings by likeness and by influence."""
    most, least = record.extremes(SHOWN)
    caption = (
        "Shares. Likeness against each trajectory’s share of the penalty. Those high up decide what the penalty does; "
        "high up and left of zero decides much and is unlike the experts."
    )
    out = drawn("shares", partial(figures.share_figure, record), folder, caption, half=True)
    out += [tag("h3", "Most like the expert’s"), _table(record, most)]
    out += [tag("h3", "Least like the expert’s"), _table(record, least)]
    influential = record.most_influential
    if influential.size:
        measured = f"measured for the {influential.size:,} with the largest shares"
        caption = (
            "Influence. How far θ moves, in the metric of the likelihood, if a trajectory is left out and everything "
            f"is fitted again; {measured}. Blue ones look like the expert’s."
        )
        out += [tag("h3", "Most influential"), _table(record, influential[:SHOWN])]
        out += drawn("influence", partial(figures.influence_figure, record), folder, caption, small=True)
    return out


def _directions(record: DiagnosisRecord, folder: Path) -> list[Html]:
    """The directions of θ in which the penalty overrules what the experts say."""
    found = record.diagnosis
    say = (
        f"Of {found.identified:,} directions of θ that the experts can decide, the penalty leaves them "
        f"{fixed(found.degrees_of_freedom, 1)} (effective degrees of freedom)."
    )
    rows = [
        row(whole_per_cent(d.shrinkage), _made_of(d.largest(plain_names(record.features), HEAVIEST)))
        for d in found.directions[:SHOWN]
    ]
    caption = (
        "Directions. What the penalty shrinks most, each as the weights of its heaviest features: moving θ this way "
        "changes what the unlabelled trajectories disagree about."
    )
    return [
        tag("p", say),
        *drawn("directions", partial(figures.directions_figure, record), folder, caption),
        table([row("taken away", "direction", head=True)], rows, "fit"),
    ]


def _table(record: DiagnosisRecord, order: Ints) -> Html:
    found = record.diagnosis
    head = row("trajectory", "likeness", "share", "similarity to the experts", "influence", head=True)
    rows = []
    for j in order:
        moved = None if found.influence is None or np.isnan(found.influence[j]) else float(found.influence[j])
        likeness, alike = float(found.likeness.unlabelled[j]), score(float(found.similarity[j]), 3)
        cells = (score(likeness, 3, signed=True), share(float(found.share[j])), alike, rounded(moved, 3))
        rows.append(row(named(record.ids[j]), *cells))
    return table([head], rows, "fit numbers")


def _made_of(parts: list[tuple[str, float]]) -> Html:
    """`+0.71 water, −0.70 home`."""
    weights = [join([tag("b", score(weight, 2, signed=True)), " ", named(name, 28)]) for name, weight in parts]
    return join(weights, ", ")
