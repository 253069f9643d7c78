"""`messirl fit`: from a folder of tracks to a reward, a policy and a report."""

from __future__ import annotations

import argparse

from messirl.cli.common import Parser, count, not_negative, number, path
from messirl.cli.data import add_data
from messirl.cli.model import add_model

DESCRIPTION = (
    "Learn the reward an expert maximises from the trajectories of a problem folder. Writes the model, "
    "its numbers (fit.json), a report with figures, and beside it what simpler methods would have given."
)


def add(made: Parser) -> None:
    add_data(made)
    add_model(made)
    group = made.add_argument_group(
        "dynamics",
        "With estimated, edges may be missing: where moves lead is counted from the trajectories outside of --test. "
        "With fitted, FOLDER is a file of recordings with vectors as states (.npz, .parquet, .csv, .hdf5, or "
        "minari:ID), and WHICH may name trajectory_id, steps, terminated, return, and the table's own columns.",
    )
    group.add_argument(
        "--dynamics", choices=("known", "estimated", "fitted"), default="known", help="where moves lead (known)"
    )
    group.add_argument("--prior", type=not_negative, help="of estimated: pseudo-counts of each action in a state (0)")
    group.add_argument("--discount", type=_discount, help="of fitted: γ, below 1; must be given")
    group.add_argument(
        "--grid", type=count, metavar="N", help="of fitted: features from N centres a coordinate (default: 1, o, o²)"
    )
    made.add_argument("--out", type=path, default="out/fit", help="folder of the results (out/fit)")
    made.add_argument("--no-baselines", action="store_true", help="do not fit the simpler methods beside it")
    made.add_argument("--no-report", action="store_true", help="the model and fit.json alone")
    made.add_argument("--json", action="store_true", help="print fit.json instead of a summary")


def run(arguments: argparse.Namespace) -> int:
    for option, kind in (("prior", "estimated"), ("discount", "fitted"), ("grid", "fitted")):
        if getattr(arguments, option) is not None and arguments.dynamics != kind:
            raise ValueError(f"--{option} is of --dynamics {kind}: leave it out, or say --dynamics {kind}")
    if arguments.dynamics == "fitted":
        from messirl.cli.recorded import fit_recordings

        return fit_recordings(arguments)
    from messirl.cli.fitting import fit

    return fit(arguments)


def _discount(text: str) -> float:
    return number(text, lambda x: 0 < x < 1, "a number above 0 and below 1")
