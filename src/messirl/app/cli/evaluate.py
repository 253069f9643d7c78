"""`messirl evaluate`: a saved model on held-out trajectories."""

from __future__ import annotations

import argparse

from messirl._formatting import nats, percentage
from messirl.app.cli._options import FILTERS, add_results
from messirl.app.cli._parser import Once, Parser, model_file, named, one_line, path, problem_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

DESCRIPTION = (
    "The log-probability a step of held-out trajectories under a saved model, how much better than chance that is, and "
    "how often the state it held most likely was the next one. Writes evaluate.json and a report."
)


def add(made: Parser) -> None:
    """Declare the arguments of `messirl evaluate`."""
    made.add_argument("model", type=path, metavar="MODEL", help="what messirl fit wrote: model.npz, or its folder")
    made.add_argument("folder", type=path, metavar="FOLDER", help="a problem folder")
    made.add_argument("--test", action=Once, metavar="WHICH", help=f"which trajectories (default: all). {FILTERS}")
    add_results(made, "out/evaluate", "evaluate.json")


def run(arguments: argparse.Namespace) -> int:
    """Score a saved model on trajectories of a problem folder; write a page and a summary."""
    from dataclasses import replace

    from messirl.app.cli._output_dir import Results
    from messirl.app.workflow.model_evaluation import evaluate
    from messirl.loading import load

    model, problem = load(model_file(arguments.model)), problem_in(arguments.folder)
    names = {"called": str(arguments.model), "folder": named(arguments.folder)}
    asked = {"report": arguments.report, "usual": arguments.usual_out, "force": arguments.force}
    with Results.asked(arguments.out, "evaluate.json", **asked) as out:
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
    """The summary for the terminal."""
    n, steps = summary["trajectories"], summary["steps"]
    score, chance, hits = nats(summary["score"]), nats(summary["uniform"]), summary["next_state_accuracy"]
    return "\n".join([
        *map(one_line, summary["in_words"]),
        "",
        f"{n} trajector{'y' if n == 1 else 'ies'}, {steps} steps",
        f"log-probability a step    {score:>10}   (a uniform policy: {chance})",
        f"most likely next state    {percentage(hits, 1):>10}   of steps",
        *(f"{name}: {place}" for name, place in files.items()),
    ])  # fmt: skip
