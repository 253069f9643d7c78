"""`messirl sample`: draw trajectories from a saved model."""

from __future__ import annotations

import argparse

from messirl._text import count_noun, did_you_mean
from messirl.app.cli._parser import Parser, count, model_file, path, same_place, seed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GOALS_SHOWN = 8
DEFAULT_OUT = "out/sample.csv"

DESCRIPTION = (
    "Draw trajectories from the policy of a saved model, with the starts of its training data. Writes a table with "
    "columns trajectory_id, step, state and action, labelled as in the problem folder of the model (and names, if "
    "they differ from the labels)."
)


def add(made: Parser) -> None:
    """Declare the arguments of `messirl sample`."""
    made.add_argument("model", type=path, metavar="MODEL", help="model.npz that messirl fit wrote, or its folder")
    made.add_argument("-n", type=count, default=10, help="number of trajectories (10)")
    made.add_argument(
        "--length", type=count, help="states per trajectory; required if nothing in the problem ends a trajectory"
    )
    made.add_argument(
        "--goal", metavar="STATE", help="goal state, by number or name; required if the model was fitted with goals"
    )
    made.add_argument("--seed", type=seed, default=0, help="random seed (0)")
    made.add_argument("--out", type=path, help=f".csv or .parquet, or - for CSV on standard output ({DEFAULT_OUT})")
    made.add_argument("--force", action="store_true", help="replace an existing file of --out")


def run(arguments: argparse.Namespace) -> int:
    """Draw trajectories of a saved model and write them as a table, or print them."""
    from pathlib import Path

    from messirl.io.folder.labels import read_labels
    from messirl.io.folder.trajectory_table import check_table_place, trajectories_as_csv, write_trajectories
    from messirl.loading import load

    place = model_file(arguments.model)
    printed = arguments.out is not None and str(arguments.out) == "-"
    out = arguments.out or Path(DEFAULT_OUT)
    if not printed:
        if same_place(place, out):
            raise ValueError(f"--out {out} is the model itself: give another name")
        check_table_place(out, overwrite=arguments.force)
    model = load(place)
    labels = read_labels(place, model.mdp_)
    goal, length = _goal(model, labels.states, arguments.goal), arguments.length
    if length is None and goal is None and model.mdp_.horizon is None and not model.mdp_.terminal.any():
        raise ValueError("nothing ends these trajectories: give --length, the number of states per trajectory")
    drawn = model.sample(arguments.n, length, goal=goal, random_state=arguments.seed)
    if printed:
        print(trajectories_as_csv(drawn, model.mdp_, labels), end="")
        return 0
    out.parent.mkdir(parents=True, exist_ok=True)
    write_trajectories(drawn, out, model.mdp_, labels=labels, overwrite=arguments.force)
    print(f"{out}: {count_noun(len(drawn), 'trajectory')} of {drawn.lengths.min()} to {drawn.lengths.max()} states")
    return 0


def _goal(model: Any, labels: list[str] | None, text: str | None) -> int | None:
    """Return the state with this label, name or number; None for a model without goals."""
    names = labels or model.mdp_.state_names
    if model.goals_ is None:
        if text is not None:
            raise ValueError("--goal has no effect on a model that was fitted without goals: leave it out")
        return None
    if text is None:
        there = [names[g] if names else str(g) for g in model.goals_]
        more = "" if len(there) <= GOALS_SHOWN else f" and {len(there) - GOALS_SHOWN} more"
        raise ValueError(
            f"the model was fitted to trajectories with goals ({', '.join(there[:GOALS_SHOWN])}{more}): give --goal"
        )
    for known in (labels, model.mdp_.state_names):
        if known is not None and text in known:
            return int(known.index(text))
    if not (text.isascii() and text.isdigit() and int(text) < model.mdp_.n_states):
        close = did_you_mean(text, names or ())
        raise ValueError(
            f"--goal {text!r} is not a state: give a name or a number from 0 to {model.mdp_.n_states - 1}{close}"
        )
    return int(text)
