"""Page of an evaluation: how well a saved model predicts trajectories, compared with chance."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from messirl.app.report.common.feature_labels import name_html
from messirl.app.report.common.html_page import draw_figure, opening, rerun, write_page, written_with
from messirl.app.report.common.interval_plot import BETTER
from messirl.app.report.common.markup import row, table
from messirl.app.report.common.number_format import count_with_noun, score, share
from messirl.app.report.fit.verdict_figures import spread_figure
from messirl.app.workflow.evaluation_record import EvaluationRecord


def write_evaluation_report(record: EvaluationRecord, title: str, out: Path) -> Path:
    """Draw the figure into out/figures, write out/report.html and return its path."""
    caption = (
        "Better than chance? How much better the model predicts each trajectory than the uniform policy does. The mark "
        "above the bars is the mean over all steps, with its 95 % interval."
    )
    figure = partial(spread_figure, record.each, record.gain, BETTER)
    pictures = draw_figure("chance", figure, out / "figures", caption, small=True)
    numbers = {
        "trajectories": f"{record.trajectories:,}",
        "steps": f"{record.steps:,}",
        "log-probability, nats per step": score(record.score),
        "log-probability of the uniform policy": score(record.uniform),
        "next state was the most likely one": share(record.next_state_accuracy, 1),
    }
    about = {"model": record.model, "problem": record.folder, "trajectories": record.test or "all"}
    parts = {
        "scores": ("Scores", [table([], [row(name, value) for name, value in numbers.items()], "fit")]),
        "about": (
            "What was evaluated",
            [table([], [row(name, name_html(text, 120)) for name, text in about.items()], "fit")],
        ),
        "environment": ("Environment", [written_with()]),
        "rerun": ("How to run it again", rerun(record.command)),
    }
    lead = f"A saved model was evaluated on {count_with_noun(record.steps, 'step')} of {record.folder}."
    warned = [f"The problem differs from the one that the model was fitted to: {', '.join(record.differences)}."]
    first = opening(record.in_words, pictures, lead, warned if record.differences else [])
    return write_page(out / "report.html", title, "evaluation", first, parts)
