"""`messirl evaluate`: a saved model on held-out trajectories."""

from __future__ import annotations

import argparse

from messirl._numbers import nats, percentage
from messirl.cli.common import Parser, as_json, model_file, note, path, problem_in
from messirl.cli.options import FILTERS

DESCRIPTION = (
    "The log-probability a step of held-out trajectories under a saved model, and how often the state it "
    "held most likely was the next one."
)


def add(made: Parser) -> None:
    """Declare the arguments of `messirl evaluate`."""
    made.add_argument("model", type=path, metavar="MODEL", help="what messirl fit wrote: model.npz, or its folder")
    made.add_argument("folder", type=path, metavar="FOLDER", help="a problem folder")
    made.add_argument("--test", metavar="WHICH", help=f"which trajectories (default: all). {FILTERS}")
    made.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print the score of a saved model on trajectories of a problem folder."""
    from messirl.loading import load
    from messirl.workflow.evaluate import evaluate
    from messirl.workflow.watch import Watcher

    model, problem = load(model_file(arguments.model)), problem_in(arguments.folder)
    names = {"called": str(arguments.model), "folder": str(arguments.folder)}
    found = evaluate(model, problem, arguments.test, Watcher(note=note), **names)
    if arguments.json:
        print(as_json(found.summary()))
    else:
        print(f"{found.trajectories} trajector{'y' if found.trajectories == 1 else 'ies'}, {found.steps} steps")
        print(f"log-probability a step    {nats(found.score):>10}   (a uniform policy: {nats(found.uniform)})")
        print(f"most likely next state    {percentage(found.next_state_accuracy, 1):>10}   of steps")
    return 0
