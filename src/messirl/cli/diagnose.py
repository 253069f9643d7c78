"""`messirl diagnose`: whether the unlabelled trajectories help MESSI, and which of them."""

from __future__ import annotations

import argparse

from messirl._defaults import AIM, CV, INFLUENTIAL
from messirl.cli.common import Parser, count, path
from messirl.cli.data import add_data
from messirl.cli.model import add_model

DESCRIPTION = (
    "Fit MESSI as messirl fit does, and say whether the unlabelled trajectories help: as a whole, one by one (which "
    "look like the expert's, which move the result) and direction by direction. Writes diagnosis.csv, diagnosis.json, "
    "figures and a page."
)


def add(made: Parser) -> None:
    add_data(made)
    add_model(made)
    group = made.add_argument_group("diagnosis")
    group.add_argument(
        "--influential",
        type=_number,
        default=INFLUENTIAL,
        metavar="N",
        help=f"leave out N, one by one ({INFLUENTIAL})",
    )
    group.add_argument("--cv", type=count, default=CV, metavar="K", help=f"folds of the experts ({CV})")
    group.add_argument("--groups", metavar="COLUMN", help="hold out whole groups: a column of trajectory_meta")
    group.add_argument("--aim", choices=("imitation", "prediction"), default=AIM, help=f"as of messirl select ({AIM})")
    made.add_argument("--out", type=path, default="out/diagnosis", help="folder of the results (out/diagnosis)")
    made.add_argument("--json", action="store_true", help="print diagnosis.json instead of a summary")


def run(arguments: argparse.Namespace) -> int:
    from messirl.cli.diagnosing import diagnosis

    return diagnosis(arguments)


def _number(text: str) -> int:
    return 0 if text == "0" else count(text)
