"""`messirl select`: the strength of the penalty, chosen by the experts' own held-out trajectories."""

from __future__ import annotations

import argparse

from messirl._defaults import AIM, CV, THETA_MAX
from messirl.cli.common import Parser, count, not_negative, path, positive
from messirl.cli.data import add_data

DESCRIPTION = (
    "Choose how strongly to use the unlabelled trajectories, or not at all: MESSI at several strengths beside no "
    "penalty, L2, the complete graph and pooling, each judged on expert trajectories it has not seen. Writes the "
    "chosen model, its numbers (select.json) and a figure."
)


def add(made: Parser) -> None:
    add_data(made)
    group = made.add_argument_group("choice")
    group.add_argument(
        "--aim",
        choices=("imitation", "prediction"),
        default=AIM,
        help="imitation: never what may lose against no penalty; prediction: the best held-out score (imitation)",
    )
    group.add_argument("--cv", type=count, default=CV, metavar="K", help=f"folds; few experts go one by one ({CV})")
    group.add_argument("--groups", metavar="COLUMN", help="hold out whole groups: a column of trajectory_meta")
    group.add_argument("--lambdas", type=_strengths, metavar="A,B,…", help="the strengths to choose from")
    group.add_argument("--nested", action="store_true", help="also an honest score of the whole procedure (slow)")
    group.add_argument("--bootstrap", type=count, metavar="N", help="95 %% intervals of θ from N resamples")
    group.add_argument("--theta-max", type=positive, default=THETA_MAX, help=f"bound on every weight ({THETA_MAX:g})")
    group.add_argument("--features", metavar="A,B,…", help="only these features (default: all)")
    made.add_argument("--out", type=path, default="out/select", help="folder of the results (out/select)")
    made.add_argument("--json", action="store_true", help="print select.json instead of a summary")


def run(arguments: argparse.Namespace) -> int:
    from messirl.cli.selecting import select

    return select(arguments)


def _strengths(text: str) -> tuple[float, ...]:
    return tuple(not_negative(word) for word in text.split(","))
