"""Page of a method comparison: ranking, differences in performance, and computing cost."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from messirl.app.report.common.feature_labels import name_html
from messirl.app.report.common.glossary import link_terms
from messirl.app.report.common.html_page import draw_figure, opening, rerun, write_page, written_with
from messirl.app.report.common.interval_plot import BETTER, gains_figure
from messirl.app.report.common.markup import Html, join, row, table, tag
from messirl.app.report.common.number_format import as_sentence, count_with_noun, fixed
from messirl.app.report.comparison.rank_figure import ranks_figure
from messirl.app.workflow.comparison_record import ComparisonRecord, label, main_measure
from messirl.inference.paired_gain import Gain
from messirl.paper.experiments.benchmark_tasks import QUALITIES, TASKS
from messirl.paper.experiments.rankings import Cell, MethodResult

PERFORMANCE = (
    "Performance is the return of the learnt policy under the true reward, scaled so that 1 is the expert and 0 is "
    "chance."
)
MEASURES = (
    "The score is the log-probability of held-out experts, in nats per step. The distance is between the feature "
    "counts of the policy and of held-out experts, scaled so that 1 is chance. MDPs solved and CPU seconds are per "
    "run, including the choice of hyperparameters."
)
HYPERPARAMETERS = (
    "The hyperparameters of every method were chosen in the same way, from the experts only: by five-fold "
    "cross-validation, or the defaults with fewer than five experts"
)
BELOW = ". Those chosen most often are below the name of the method."
BOLD = "The best mean of every column is bold; its interval shows whether it is significantly the best."


def write_comparison_report(record: ComparisonRecord, out: Path) -> Path:
    """Draw the figures into out/figures, write out/report.html and return its path."""
    folder, one = out / "figures", len(record.cells) == 1
    parts = {
        "table": ("Results by method" if one else "Measures", _told(record)),
        **({} if one else _tables(record)),
        "failures": ("Failed runs", _failures(record.cells)),
        "environment": ("Environment", [_origin(record), written_with()]),
        "rerun": ("How to run it again", rerun(record.command)),
    }
    pictures = _gains(record.cells[0], folder) if one else _ranks(record, folder)
    first = opening(record.in_words, pictures, record.lead, [as_sentence(text) + "." for text in record.notes])
    kind = "methods compared" if one else "methods over many problems"
    return write_page(out / "report.html", record.title, kind, first, parts)


def _told(record: ComparisonRecord) -> list[Html]:
    """Explain the measures; for a single cell, add the table of all methods."""
    if len(record.cells) > 1:
        return [tag("p", link_terms(f"{PERFORMANCE} {BOLD} {HYPERPARAMETERS}."))]
    cell = record.cells[0]
    words = [*([PERFORMANCE] if cell.truth else []), MEASURES, HYPERPARAMETERS + BELOW]
    return [tag("p", link_terms(" ".join(words))), *_whole(cell)]


def _gains(cell: Cell, folder: Path) -> list[Html]:
    rows = [(label(one.method), main_measure(cell, one)[1]) for one in cell.standings if one.method != cell.base]
    words = "◂ worse · better ▸ (performance)" if cell.truth else BETTER
    caption = (
        f"Which is better? The difference of every method from {label(cell.base)}, paired by run, with 95 % intervals. "
        "Blue is significantly better, orange significantly worse, hollow neither."
    )
    return draw_figure("gains", partial(gains_figure, rows, words), folder, caption, small=True)


def _ranks(record: ComparisonRecord, folder: Path) -> list[Html]:
    caption = (
        "Ranks. The mean rank of every method over all problems, by performance, with 95 % intervals over runs. The "
        "best method overall is on top."
    )
    return draw_figure("ranks", partial(ranks_figure, record), folder, caption)


def _whole(cell: Cell) -> list[Html]:
    """Return the table of all measures of one cell."""
    heads = ["method", "performance" if cell.truth else None, f"gain over {label(cell.base)}", "score", "distance"]
    heads += ["MDPs solved", "CPU s", "runs", "converged"]
    rows = [_line(cell, one) for one in cell.standings if one.runs]
    say = f"Gains over {label(cell.base)} are paired by run; their intervals are of the paired differences."
    return [tag("p", say), table([row(*(head for head in heads if head), head=True)], rows, "results")]


def _line(cell: Cell, one: MethodResult) -> Html:
    _, over = main_measure(cell, one)
    cells = [
        join(
            [name_html(label(one.method)), *([tag("br"), tag("span", one.knobs, class_="note")] if one.knobs else [])]
        ),
        *([_number(one.performance)] if cell.truth else []),
        "–" if one.method == cell.base else _number(over, signed=True),
        _number(one.score),
        _number(one.distance),
        f"{one.solved:,.0f}",
        "< 0.01" if one.cpu < 0.01 else fixed(one.cpu, 2),
        str(one.runs),
        f"{100 * one.converged:.0f} %",
    ]
    return row(*cells)


def _number(gain: Gain, *, signed: bool = False) -> Html:
    """Format a mean with its interval below it."""
    if np.isnan(gain.mean):
        return join(["–"])
    mean = fixed(gain.mean, 3, signed=signed)
    around = f"[{fixed(gain.low, 3)}, {fixed(gain.high, 3)}]" if np.isfinite([gain.low, gain.high]).all() else ""
    return join([mean, tag("br"), tag("span", around, class_="note")])


def _tables(record: ComparisonRecord) -> dict[str, tuple[str, Sequence[Html]]]:
    """Return a table of performance per number of experts and kind of unlabelled trajectories."""
    out: dict[str, tuple[str, Sequence[Html]]] = {}
    problems = sorted({cell.problem for cell in record.cells}, key=TASKS.index)
    for n in sorted({cell.experts for cell in record.cells}):
        content: list[Html] = []
        for quality in QUALITIES:
            here = {c.problem: c for c in record.cells if (c.experts, c.unlabelled) == (n, quality)}
            if here:
                rows = [row(label(m), *(_best(here.get(p), m) for p in problems)) for m in record.methods]
                content += [
                    tag("h3", f"Unlabelled trajectories: {quality}"),
                    table([row("", *problems, head=True)], rows, "results"),
                ]
        out[f"experts-{n}"] = (f"Performance with {count_with_noun(n, 'expert')}", content)
    return out


def _best(cell: Cell | None, method: str) -> Html:
    """Format the performance of a method, in bold if no other has a higher mean."""
    if cell is None:
        return join(["–"])
    one = cell.of(method)
    number = _number(one.performance)
    top = max(other.performance.mean for other in cell.standings if other.runs)
    return tag("b", number) if one.runs and one.performance.mean >= top else number


def _failures(cells: Sequence[Cell]) -> list[Html]:
    found: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        for one in cell.standings:
            if one.failure:
                place = f"{cell.problem}, {cell.unlabelled}, {count_with_noun(cell.experts, 'expert')}"
                found.setdefault((label(one.method), one.failure), []).append(place)
    rows = [row(method, why, "; ".join(places[:6])) for (method, why), places in found.items()]
    return [table([row("method", "error", "problems", head=True)], rows, "fit")] if rows else []


def _origin(record: ComparisonRecord) -> Html:
    rows = [row(name, str(value)) for name, value in record.origin.items()]
    return table([], [*rows, row("seconds", fixed(record.seconds, 1))], "fit")
