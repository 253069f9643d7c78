"""The page of a diagnosis, which is also a section of the report of a fit: do the unlabelled trajectories help?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from messirl._types import Ints
from messirl.report.fit import diagnosis_figures as figures
from messirl.report.fit import tables
from messirl.report.fit.record import Diagnosed
from messirl.report.kit.images import render, save, write_bytes
from messirl.report.kit.markup import Html, join, row, table, tag
from messirl.report.kit.names import named, one_line, short
from messirl.report.kit.numbers import number, score, share, significant
from messirl.report.kit.page import contents, document, figure, section
from messirl.report.kit.versions import versions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = 10  # rows of each table
HEAVIEST = 4  # features of a direction
MEANING = {
    "help": "The unlabelled trajectories help: what is recommended uses them.",
    "do not matter": "The unlabelled trajectories do not matter: what is recommended does not use them, and they would "
    "do no harm either.",
    "hurt": "The unlabelled trajectories hurt: leave them out.",
}


def write_diagnosis_report(
    record: Diagnosed, out: Path, *, title: str, lead: str, settings: dict[str, str], command: str, notes: list[str]
) -> Path:
    """Draw the figures into out/figures and write out/diagnosis.html; returns its path."""
    folder = out / "figures"
    parts = {
        "verdict": ("Do they help?", verdict_parts(record, folder)),
        "trajectories": ("Which ones", trajectory_parts(record, folder)),
        "directions": ("What the penalty decides", direction_parts(record, folder)),
        "settings": ("Settings", [tables.words_table(settings), table([], [row("page written with", versions())])]),
        "rerun": ("How to run it again", [tag("pre", tag("code", command))]),
    }
    head = tag(
        "header",
        tag("h1", named(title, 80)),
        tag("p", lead, class_="lead"),
        *(tag("p", tag("b", "Warning. "), one_line(words), class_="warning") for words in notes),
        contents({anchor: words for anchor, (words, _) in parts.items()}),
    )
    body = join([head, *(section(anchor, words, *content) for anchor, (words, content) in parts.items())])
    page = out / "diagnosis.html"
    write_bytes(page, document(f"{short(title, 80)}: diagnosis", body).encode(errors="replace"))
    return page


def diagnosis_parts(record: Diagnosed, folder: Path) -> list[Html]:
    """All of it, as one section of another page."""
    return [
        *verdict_parts(record, folder),
        tag("h3", "Which ones"),
        *trajectory_parts(record, folder),
        tag("h3", "What the penalty decides"),
        *direction_parts(record, folder),
    ]


def verdict_parts(record: Diagnosed, folder: Path) -> list[Html]:
    """The verdict, why, and how like the expert's they are."""
    found = record.diagnosis
    caption = (
        "Likeness. How much better each unlabelled trajectory is explained by what the experts alone teach than by "
        "chance; blue ones are above zero. The dashed line is where held-out experts are."
    )
    beyond = figures.beyond(record) if np.isfinite(found.likeness.unlabelled).any() else 0
    if beyond:
        caption += f" Far outside, and drawn at the edge: {beyond:,}."
    return [
        tag("p", tag("b", MEANING[found.verdict])),
        tag("ul", *(tag("li", f"{text[0].upper()}{text[1:]}.") for text in found.evidence)),
        *_drawn("likeness", partial(figures.likeness_figure, record), folder, caption),
    ]


def trajectory_parts(record: Diagnosed, folder: Path) -> list[Html]:
    """Rankings by likeness and by influence."""
    order = np.argsort(-record.diagnosis.likeness.unlabelled, kind="stable")
    out = _drawn(
        "shares",
        partial(figures.share_figure, record),
        folder,
        "Shares. Likeness against each trajectory’s share of the penalty. Those high up decide what the penalty does; "
        "high up and left of zero decides much and is unlike the experts.",
    )
    tops = _ends(record)
    out += [tag("h3", "Most like the expert’s"), _trajectories(record, order[:tops])]
    out += [tag("h3", "Least like the expert’s"), _trajectories(record, order[::-1][:tops])]
    influential = figures.most_influential(record)
    if influential.size:
        measured = f"measured for the {influential.size:,} with the largest shares"
        caption = (
            "Influence. How far θ moves, in the metric of the likelihood, if a trajectory is left out and everything "
            f"is fitted again; {measured}. Blue ones look like the expert’s."
        )
        out += [tag("h3", "Most influential"), _trajectories(record, influential[:SHOWN])]
        out += _drawn("influence", partial(figures.influence_figure, record), folder, caption)
    return out


def direction_parts(record: Diagnosed, folder: Path) -> list[Html]:
    """What the penalty takes away from what the experts say."""
    found = record.diagnosis
    say = (
        f"Of {found.identified:,} directions of θ that the experts can decide, the penalty leaves them "
        f"{number(found.degrees_of_freedom, 1)} (effective degrees of freedom)."
    )
    rows = [
        row(figures.percent(d.shrinkage), _made_of(d.largest(record.features, HEAVIEST)))
        for d in found.directions[:SHOWN]
    ]
    caption = (
        "Directions. What the penalty shrinks most, each as the weights of its heaviest features: moving θ this way "
        "changes what the unlabelled trajectories disagree about."
    )
    return [
        tag("p", say),
        *_drawn("directions", partial(figures.directions_figure, record), folder, caption, half=False),
        table([row("taken away", "direction", head=True)], rows, "fit"),
    ]


def _drawn(
    name: str, make: Callable[[], Figure | None], folder: Path, caption: str, *, half: bool = True
) -> list[Html]:
    image = render(name, make)
    if image is None:
        return []
    save(image, folder)
    return [figure(image, caption, half=half)]


def _trajectories(record: Diagnosed, order: Ints) -> Html:
    found = record.diagnosis
    rows = []
    for j in order:
        moved = None if found.influence is None or np.isnan(found.influence[j]) else float(found.influence[j])
        rows.append(
            row(
                named(record.ids[j]),
                score(float(found.likeness.unlabelled[j]), 3, signed=True),
                share(float(found.share[j])),
                score(float(found.similarity[j]), 3),
                significant(moved, 3),
            )
        )
    return table(
        [row("trajectory", "likeness", "share", "similarity to the experts", "influence", head=True)], rows, "fit"
    )


def _ends(record: Diagnosed) -> int:
    """Few enough that no trajectory is in both tables."""
    return min(SHOWN, max(len(record.ids) // 2, 1))


def _made_of(parts: list[tuple[str, float]]) -> Html:
    """`+0.71 water, −0.70 home`."""
    weights = [join([tag("b", score(weight, 2, signed=True)), " ", named(name, 28)]) for name, weight in parts]
    return join(weights, ", ")
