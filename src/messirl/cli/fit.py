"""`messirl fit`: from a folder of tracks to a reward, a policy and a report."""

from __future__ import annotations

import argparse

from messirl.cli.common import Parser, path
from messirl.cli.data import add_data
from messirl.cli.model import add_model

DESCRIPTION = (
    "Learn the reward an expert maximises from the trajectories of a problem folder. Writes the model, "
    "its numbers (fit.json), a report with figures, and beside it what simpler methods would have given."
)


def add(made: Parser) -> None:
    add_data(made)
    add_model(made)
    made.add_argument("--out", type=path, default="out/fit", help="folder of the results (out/fit)")
    made.add_argument("--no-baselines", action="store_true", help="do not fit the simpler methods beside it")
    made.add_argument("--no-report", action="store_true", help="the model and fit.json alone")
    made.add_argument("--json", action="store_true", help="print fit.json instead of a summary")


def run(arguments: argparse.Namespace) -> int:
    from messirl.cli.fitting import fit

    return fit(arguments)
