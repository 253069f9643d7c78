"""`messirl evaluate`: score a saved model on held-out trajectories."""

from __future__ import annotations

import argparse

from messirl._formatting import format_nats, percentage
from messirl._text import count_noun
from messirl.app.cli._options import FILTERS, add_results
from messirl.app.cli._parser import Parser, StoreOnce, folder_name, model_file, one_line, path, problem_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

DESCRIPTION = (
    "Score a saved model on held-out trajectories: the log-probability per step, the gain over a uniform policy, and "
    "how often the most likely next state was the right one. Writes evaluate.json and a report."
)


def add(made: Parser) -> None:
    """Declare the arguments of `messirl evaluate`."""
    made.add_argument("model", type=path, metavar="MODEL", help="model.npz that messirl fit wrote, or its folder")
    made.add_argument("folder", type=path, metavar="FOLDER", help="a problem folder")
    made.add_argument("--test", action=StoreOnce, metavar="WHICH", help=f"the trajectories to score (all). {FILTERS}")
    add_results(made, "out/evaluate", "evaluate.json")


def run(arguments: argparse.Namespace) -> int:
    """Score a saved model on trajectories of a problem folder; write a report and a summary."""
    from dataclasses import replace

    from messirl.app.cli._output_dir import Results
    from messirl.app.workflow.model_evaluation import evaluate
    from messirl.loading import load

    model, problem = load(model_file(arguments.model)), problem_in(arguments.folder)
    names = {"called": str(arguments.model), "folder": folder_name(arguments.folder)}
    asked = {"report": arguments.report, "default": arguments.usual_out, "force": arguments.force}
    with Results.from_options(arguments.out, "evaluate.json", **asked) as out:
        record = evaluate(model, problem, arguments.test, out.watcher, **names)
        record = replace(record, command=arguments.command)
        summary, written = record.summary(), dict[str, "Path"]()
        out.write_summary("evaluate.json", summary)
        if arguments.report:
            from messirl.app.report.fit.evaluation_page import write_evaluation_report

            write_evaluation_report(record, arguments.folder.resolve().name, out.place)
            written["report"] = arguments.out / "report.html"
        return out.finish("evaluate.json", summary, text_of(summary, written), json=arguments.json)


def text_of(summary: dict[str, Any], files: dict[str, Path]) -> str:
    """Return the text for the terminal."""
    n, steps = summary["trajectories"], summary["steps"]
    score, chance, hits = format_nats(summary["score"]), format_nats(summary["uniform"]), summary["next_state_accuracy"]
    return "\n".join([
        *map(one_line, summary["in_words"]),
        "",
        f"{count_noun(n, 'trajectory')}, {count_noun(steps, 'step')}",
        f"log-probability per step  {score:>10}   (a uniform policy: {chance})",
        f"most likely next state    {percentage(hits, 1):>10}   of steps",
        *(f"{name}: {place}" for name, place in files.items()),
    ])  # fmt: skip
