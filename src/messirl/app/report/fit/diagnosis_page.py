"""Page of a diagnosis: whether the unlabelled trajectories help, and which of them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from messirl._formatting import whole_per_cent
from messirl._types import Ints
from messirl.app.report.common.feature_labels import name_html
from messirl.app.report.common.glossary import link_terms
from messirl.app.report.common.html_page import draw_figure, opening, rerun, write_page, written_with
from messirl.app.report.common.interval_plot import BETTER, gains_figure
from messirl.app.report.common.markup import Html, join, row, table, tag
from messirl.app.report.common.number_format import as_sentence, fixed, rounded, score, share
from messirl.app.report.fit import diagnosis_figures as figures, tables
from messirl.app.report.fit.group_section import groups_section
from messirl.app.workflow.narrative import plain_names
from messirl.app.workflow.record import DiagnosisRecord

SHOWN = 10  # rows per table
HEAVIEST = 4  # features listed per direction


def write_diagnosis_report(record: DiagnosisRecord, out: Path) -> Path:
    """Draw the figures into out/figures, write out/report.html and return its path."""
    folder = out / "figures"
    parts = {
        "verdict": ("Do they help?", _verdict(record)),
        "groups": ("Results by group", groups_section(record.by, folder)),
        "trajectories": ("Which trajectories", _trajectories(record, folder)),
        "directions": ("Effect of the penalty", _directions(record, folder)),
        "settings": ("Settings", [tables.words_table(record.settings), written_with()]),
        "rerun": ("How to run it again", rerun(record.command)),
    }
    lead = (
        f"MESSI with λ0 = {record.lambda0:g} was fitted to {record.counts.get('expert', 0):,} expert and "
        f"{len(record.ids):,} unlabelled trajectories. The verdict above rests on the best method chosen by "
        "cross-validation; the rankings and the effect of the penalty below rest on this fit."
    )
    warned = tables.with_plain_names(record.warnings, record.features)
    first = opening(record.in_words, _pictures(record, folder), lead, warned)
    return write_page(out / "report.html", record.title, "diagnosis", first, parts)


def _pictures(record: DiagnosisRecord, folder: Path) -> list[Html]:
    """Draw the gain on held-out experts, and the agreement with the expert policy."""
    found, shown = record.diagnosis, list[Html]()
    if found.use is not None:
        caption = (
            f"Did they help? The gain on held-out experts of {found.use.using} (with the unlabelled trajectories) over "
            f"{found.use.alone} (experts only), with its 95 % interval."
        )
        rows = [("with them", found.use.gain)]
        shown += draw_figure("use", partial(gains_figure, rows, BETTER), folder, caption, small=True)
    caption = (
        "Agreement with the expert policy. How much better a model fitted to the experts only predicts each unlabelled "
        "trajectory than chance does, before shrinkage. Blue is above zero. The dashed line is the mean of held-out "
        "experts."
    )
    beyond = figures.count_beyond_limits(record) if np.isfinite(found.agreement_with_experts.unlabelled).any() else 0
    if beyond:
        caption += f" Far outside, and drawn at the edge: {beyond:,}."
    return shown + draw_figure("likeness", partial(figures.agreement_figure, record), folder, caption, small=True)


def _verdict(record: DiagnosisRecord) -> list[Html]:
    """Return the evidence for the verdict, except the sentence that opens the page."""
    found = record.diagnosis
    first = None if found.use is None else found.use.sentence
    return [tag("ul", *(tag("li", link_terms(f"{as_sentence(text)}.")) for text in found.evidence if text != first))]


def _trajectories(record: DiagnosisRecord, folder: Path) -> list[Html]:
    """Return rankings by agreement with the expert policy and by influence."""
    most, least = record.extremes(SHOWN)
    caption = (
        "Shares. The share of the penalty against agreement, per trajectory. Trajectories at the top determine the "
        "penalty most. Those at the top left do so although they do not agree with the expert policy."
    )
    out = draw_figure("shares", partial(figures.share_figure, record), folder, caption, half=True)
    out += [tag("p", link_terms(text)) for text in _ranking(record)]
    if record.diagnosis.agreement_with_experts.agreement.between == 0.0:  # every value is the mean
        out += [tag("h3", "Agreement"), _table(record, most)]
    else:
        out += [tag("h3", "Highest agreement"), _table(record, most)]
        out += [tag("h3", "Lowest agreement"), _table(record, least)]
    influential = record.most_influential
    if influential.size:
        measured = f"measured for the {influential.size:,} with the largest shares"
        caption = (
            "Influence. How far θ moves, in the metric of the likelihood, if a trajectory is left out and the model "
            f"is fitted again; {measured}. Blue trajectories agree with the expert policy."
        )
        out += [tag("h3", "Most influential"), _table(record, influential[:SHOWN])]
        out += draw_figure("influence", partial(figures.influence_figure, record), folder, caption, small=True)
    return out


def _ranking(record: DiagnosisRecord) -> list[str]:
    """Explain how trajectories are ranked by agreement with the expert policy."""
    found = record.diagnosis.agreement_with_experts.agreement
    if not np.isfinite([found.mean, found.between, found.within]).all():
        return []
    differ = f"Agreement varies between trajectories with a standard deviation of {rounded(found.between, 2)}."
    order = "The first table is ordered by the lower end of the 95 % interval and the second by its upper end."
    if found.between == 0.0:
        differ = "Trajectories do not differ by more than this noise, so that all are estimated at this mean."
        order = "The table shows those whose agreement before shrinkage is above it by the most, all steps together."
    return [
        "The mean of a few steps is mostly noise. Agreement is therefore shrunk towards the precision-weighted mean of "
        f"the unlabelled trajectories, {score(found.mean, 3, signed=True)}: the shorter a trajectory, the more. "
        f"Within a trajectory, steps have a standard deviation of {rounded(found.within, 2)} nats. {differ} "
        f"The figures show agreement before shrinkage. {order}"
    ]


def _directions(record: DiagnosisRecord, folder: Path) -> list[Html]:
    """Return the directions of θ that the penalty shrinks most."""
    found = record.diagnosis
    say = (
        f"Of {found.identified:,} directions of θ that the experts identify, the penalty leaves "
        f"{fixed(found.degrees_of_freedom, 1)} effective degrees of freedom."
    )
    rows = [
        row(whole_per_cent(d.shrinkage), _made_of(d.largest(plain_names(record.features), HEAVIEST)))
        for d in found.directions[:SHOWN]
    ]
    caption = (
        "Directions. The directions of θ that the penalty shrinks most, with the largest weights of each. Moving θ "
        "along them gives similar trajectories different rewards."
    )
    return [
        tag("p", say),
        *draw_figure("directions", partial(figures.directions_figure, record), folder, caption),
        table([row("shrunk by", "direction", head=True)], rows, "fit"),
    ]


def _table(record: DiagnosisRecord, order: Ints) -> Html:
    columns = ("agreement", "95 % interval", "unshrunk", "steps", "share", "similarity to the experts", "influence")
    rows = []
    for one, j in zip(record.rows(order), order, strict=True):
        known = np.isfinite([one["agreement_low"], one["agreement_high"]]).all()
        low, high = (score(one[f"agreement_{end}"], 3) for end in ("low", "high"))
        cells = [score(one["agreement"], 3, signed=True), f"[{low}, {high}]" if known else "–"]
        cells += [score(one["likeness"], 3, signed=True), "–" if np.isnan(one["steps"]) else f"{one['steps']:,}"]
        cells += [share(one["share"])]
        cells += [score(one["similarity"], 3), rounded(None if np.isnan(one["influence"]) else one["influence"], 3)]
        rows.append(row(name_html(record.ids[j]), *cells))
    return table([row("trajectory", *columns, head=True)], rows, "fit numbers")


def _made_of(parts: list[tuple[str, float]]) -> Html:
    """Return the weights of a direction: `+0.71 water, −0.70 home`."""
    weights = [join([tag("b", score(weight, 2, signed=True)), " ", name_html(name, 28)]) for name, weight in parts]
    return join(weights, ", ")
