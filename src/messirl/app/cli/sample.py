"""`messirl sample`: trajectories of a fitted policy."""

from __future__ import annotations

import argparse

from messirl._text import did_you_mean
from messirl.app.cli._parser import Parser, count, model_file, path, same_place, seed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GOALS_SHOWN = 8
DEFAULT_OUT = "out/sample.csv"

DESCRIPTION = (
    "Draw trajectories of the policy of a saved model, from the starts it was fitted to, and write them as "
    "a table: trajectory_id, step, state, action, called as the folder calls them that the model was fitted to (and "
    "their names, where these are others)."
)


def add(made: Parser) -> None:
    """Declare the arguments of `messirl sample`."""
    made.add_argument("model", type=path, metavar="MODEL", help="what messirl fit wrote: model.npz, or its folder")
    made.add_argument("-n", type=count, default=10, help="how many (10)")
    made.add_argument("--length", type=count, help="states of each, where the problem does not say when to end")
    made.add_argument("--goal", metavar="STATE", help="the state to go to, by number or name, where the fit had goals")
    made.add_argument("--seed", type=seed, default=0, help="seed of the draws (0)")
    made.add_argument("--out", type=path, help=f".csv or .parquet, or - for CSV on standard output ({DEFAULT_OUT})")
    made.add_argument("--force", action="store_true", help="replace the file of --out if it is there already")


def run(arguments: argparse.Namespace) -> int:
    """Draw trajectories of a saved model and write them as a table, or print them."""
    from pathlib import Path

    from messirl.io.folder.labels import read_labels
    from messirl.io.folder.trajectory_table import check_table_place, trajectories_as_csv, write_trajectories
    from messirl.loading import load

    place = model_file(arguments.model)
    printed = arguments.out is not None and str(arguments.out) == "-"
    out = arguments.out or Path(DEFAULT_OUT)
    replace = arguments.force or arguments.out is None  # the default file may always be replaced
    if not printed:
        if same_place(place, out):
            raise ValueError(f"--out {out} is the model itself: give another name")
        check_table_place(out, overwrite=replace)
    model = load(place)
    labels = read_labels(place, model.mdp_)
    goal, length = _goal(model, labels.states, arguments.goal), arguments.length
    if length is None and goal is None and model.mdp_.horizon is None and not model.mdp_.terminal.any():
        raise ValueError("nothing ends these trajectories: give --length, the number of states of each")
    drawn = model.sample(arguments.n, length, goal=goal, random_state=arguments.seed)
    if printed:
        print(trajectories_as_csv(drawn, model.mdp_, labels), end="")
        return 0
    out.parent.mkdir(parents=True, exist_ok=True)
    write_trajectories(drawn, out, model.mdp_, labels=labels, overwrite=replace)
    many = "1 trajectory" if len(drawn) == 1 else f"{len(drawn)} trajectories"
    print(f"{out}: {many} of {drawn.lengths.min()} to {drawn.lengths.max()} states")
    return 0


def _goal(model: Any, labels: list[str] | None, text: str | None) -> int | None:
    """The state of that label, name or number; None where the fit had no goals."""
    names = labels or model.mdp_.state_names
    if model.goals_ is None:
        if text is not None:
            raise ValueError("--goal: the model was fitted without goals; leave it out")
        return None
    if text is None:
        there = [names[g] if names else str(g) for g in model.goals_]
        more = "" if len(there) <= GOALS_SHOWN else f" and {len(there) - GOALS_SHOWN} more"
        raise ValueError(
            f"the model was fitted to trips with goals ({', '.join(there[:GOALS_SHOWN])}{more}): give --goal"
        )
    for known in (labels, model.mdp_.state_names):
        if known is not None and text in known:
            return int(known.index(text))
    if not (text.isascii() and text.isdigit() and int(text) < model.mdp_.n_states):
        close = did_you_mean(text, names or ())
        raise ValueError(f"--goal {text!r} is no state: give a name or one of 0 … {model.mdp_.n_states - 1}{close}")
    return int(text)
