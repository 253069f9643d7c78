"""Page of a model selection: whether the unlabelled trajectories help, the chosen model and all candidates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from messirl._text import quote_name
from messirl.app.report.common.feature_labels import name_html, shorten
from messirl.app.report.common.glossary import link_terms
from messirl.app.report.common.html_page import draw_figure, opening, rerun, write_page, written_with
from messirl.app.report.common.interval_plot import BETTER, gains_figure
from messirl.app.report.common.markup import Html, row, table, tag
from messirl.app.report.common.number_format import as_sentence, count_with_noun, plain, rounded, score
from messirl.app.report.fit import tables
from messirl.app.report.fit.group_section import groups_section
from messirl.app.report.fit.selection_figures import gains_figure as knobs_figure
from messirl.app.report.fit.tables import preferences_table
from messirl.app.report.fit.verdict_figures import preferences_picture
from messirl.app.workflow.group_by import TOGETHER
from messirl.app.workflow.narrative import feature_names
from messirl.app.workflow.record import SelectionRecord
from messirl.estimators.registry import METHODS
from messirl.inference.paired_gain import Gain

MOST_ROWS = 60
LUCKY = (
    "Gains are paired by held-out trajectory, and each interval is of one comparison. The score of the chosen "
    "candidate is slightly optimistic, since it was chosen on these trajectories. Nested validation gives an unbiased "
    "score of the whole procedure."
)
NO_INTERVALS = "These estimates have no intervals. Add them with the bootstrap, which resamples the trajectories."


def write_selection_report(record: SelectionRecord, out: Path) -> Path:
    """Draw the figures into out/figures, write out/report.html and return its path."""
    folder = out / "figures"
    parts = {
        "candidates": ("Candidates", _candidates(record, folder)),
        "groups": ("Results by group", _groups(record, folder)),
        "stability": ("Stability of MESSI", _stability(record)),
        "weights": ("Reward by feature", _weights(record)),
        "settings": ("Settings of the chosen model", [tables.words_table(record.settings), written_with()]),
        "rerun": ("How to run it again", rerun(record.command)),
    }
    kinds = " and ".join(f"{n:,} {kind}" for kind, n in record.counts.items() if kind != "test")
    found = record.validation
    judged = (
        f"{count_with_noun(len(found.candidates), 'candidate')} were scored"
        if found is not None
        else "No candidate was scored"
    )
    lead = f"There were {kinds} trajectories. {judged}"
    if found is not None:
        lead += f" on the {_held_out(record, int(found.steps.size))}, each held out in turn"
    lead += "."
    if record.held_out is not None:
        lead += f" The chosen model gives the test trajectories {score(record.held_out)} nats per step."
    if record.nested is not None:
        mean, error = score(record.nested.mean), score(record.nested.standard_error)
        lead += f" The whole procedure (nested cross-validation) gives held-out experts {mean} ± {error} nats per step."
    warned = tables.with_plain_names(record.warnings, record.model.best_estimator_.mdp_.feature_names)
    first = opening(record.in_words, _pictures(record, folder), lead, warned)
    return write_page(out / "report.html", record.title, "selection", first, parts)


def _groups(record: SelectionRecord, folder: Path) -> list[Html]:
    if not record.by:
        return []
    say = as_sentence(TOGETHER.format(column=shorten(record.by[0].column)))
    return [tag("p", f"{say}."), *groups_section(record.by, folder)]


def _held_out(record: SelectionRecord, n: int) -> str:
    """Return what is held out, in words: the expert trajectories, or groups of them."""
    return f"{n:,} expert trajectories" if n == record.counts.get("expert") else f"{n:,} groups of expert trajectories"


def best_of_methods(record: SelectionRecord) -> list[tuple[str, Gain]]:
    """Return the best candidate of every method, and its gain over the choice of the same rule from experts only."""
    found, use = record.validation, record.model.use_
    if found is None or use is None:
        return []
    best: dict[str, int] = {}
    for i in (int(i) for i in np.argsort(-np.asarray(found.scores), kind="stable")):
        best.setdefault(found.candidates[i].method, i)
    best[record.choice.candidate.method] = record.choice.index
    return [(METHODS[method].label, found.gain(i, record.zero)) for method, i in best.items() if i != record.zero]


def _pictures(record: SelectionRecord, folder: Path) -> list[Html]:
    rows, use, shown = best_of_methods(record), record.model.use_, list[Html]()
    if rows and use is not None:
        bold = METHODS[record.choice.candidate.method].label
        caption = (
            "Do the unlabelled trajectories help? The best candidate of every method, with the chosen one in bold. "
            f"Shown is its gain on held-out experts over the best choice with experts only, "
            f"{quote_name(str(use.alone))}, "
            "with its 95 % interval. Blue is significantly better, orange significantly worse, hollow neither."
        )
        figure = partial(gains_figure, rows, BETTER, bold)
        shown += draw_figure("use", figure, folder, caption, small=True)
    return [*shown, *preferences_picture(record.preferences, folder), preferences_table(record.preferences)]


def _candidates(record: SelectionRecord, folder: Path) -> list[Html]:
    found, choice = record.validation, record.choice
    if found is None:
        return [tag("p", as_sentence(choice.reason) + ".")]
    caption = (
        f"Candidates. The gain of each on held-out experts over "
        f"{quote_name(str(found.candidates[record.zero]))}, by its "
        "hyperparameter, with 95 % intervals. The ring marks the chosen candidate; arrows at the edge are larger "
        "losses."
    )
    order = np.argsort(-np.asarray(found.scores), kind="stable")[:MOST_ROWS]
    rows = []
    for i in (int(i) for i in order):
        gain = found.gain(i, record.zero)
        mark = tag("b", str(found.candidates[i])) if i == choice.index else name_html(str(found.candidates[i]), 80)
        ends = f"[{score(gain.low, signed=True)}, {score(gain.high, signed=True)}]" if np.isfinite(gain.low) else "–"
        told = ("–", "") if i == record.zero else (score(gain.mean, signed=True), ends)
        rows.append(row(mark, score(float(found.scores[i])), *told))
    over = f"over {shorten(str(found.candidates[record.zero]), 40)}"
    heads = row("candidate (chosen in bold)", "nats per step", over, "95 % interval", head=True)
    left = f" The best {MOST_ROWS} of {len(found.candidates):,} are shown." if len(found.candidates) > MOST_ROWS else ""
    return [
        *draw_figure("gains", partial(knobs_figure, record), folder, caption),
        tag("p", link_terms(LUCKY + left)),
        table([heads], rows, "fit numbers"),
    ]


def _stability(record: SelectionRecord) -> list[Html]:
    if record.stability is None:
        return []
    rows = [row(plain(one["lambda0"]), rounded(one["spread"])) for one in record.stability]
    say = (
        "The spread of MESSI’s policy over random halves of the unlabelled trajectories. A spread near zero is stable, "
        "though not necessarily right. A large spread depends on which trajectories were recorded."
    )
    return [tag("p", say), table([row("λ0", "spread", head=True)], rows, "fit")]


def _weights(record: SelectionRecord) -> list[Html]:
    model, ends = record.model.best_estimator_, record.intervals or {}
    order = np.argsort(-np.abs(model.theta_), kind="stable")[: tables.MOST_ROWS]
    rows = []
    names = feature_names(model.mdp_)
    for j in (int(j) for j in order):
        around = [_ends(ends.get(model.mdp_.feature_ids[j]))] if ends else []
        rows.append(row(name_html(names[j]), rounded(float(model.theta_[j])), *around))
    heads = ["feature", "weight θ", *(["95 % interval, resampled"] if ends else [])]
    say = [] if ends else [tag("p", NO_INTERVALS)]
    return [*say, table([row(*heads, head=True)], rows, "fit")]


def _ends(interval: Sequence[float] | None) -> str:
    return "–" if interval is None else f"[{rounded(interval[0])}, {rounded(interval[1])}]"
