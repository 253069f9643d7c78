"""`messirl sample`: trajectories of a fitted policy."""

from __future__ import annotations

import argparse

from messirl.cli.common import Parser, count, model_file, path, seed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GOALS_SHOWN = 8

DESCRIPTION = (
    "Draw trajectories of the policy of a saved model, from the starts it was fitted to, and write them as "
    "a table: trajectory_id, step, state, action (and their names, where they have some)."
)


def add(made: Parser) -> None:
    made.add_argument("model", type=path, metavar="MODEL", help="what messirl fit wrote: model.npz, or its folder")
    made.add_argument("-n", type=count, default=10, help="how many (10)")
    made.add_argument("--length", type=count, help="states of each, where the problem does not say when to end")
    made.add_argument("--goal", metavar="STATE", help="the state to go to, by number or name, where the fit had goals")
    made.add_argument("--seed", type=seed, default=0, help="seed of the draws (0)")
    made.add_argument("--out", type=path, default="out/sample.csv", help=".csv or .parquet (out/sample.csv)")


def run(arguments: argparse.Namespace) -> int:
    from messirl.estimators import load
    from messirl.io.tracks import write_trajectories

    model = load(model_file(arguments.model))
    goal, length = _goal(model, arguments.goal), arguments.length
    if length is None and goal is None and model.mdp_.horizon is None and not model.mdp_.terminal.any():
        raise ValueError("nothing ends these trajectories: give --length, the number of states of each")
    drawn = model.sample(arguments.n, length, goal=goal, random_state=arguments.seed)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    write_trajectories(drawn, arguments.out, model.mdp_)
    print(f"{arguments.out}: {len(drawn)} trajectories of {drawn.lengths.min()} to {drawn.lengths.max()} states")
    return 0


def _goal(model: Any, text: str | None) -> int | None:
    """The state of that name or number; None where the fit had no goals."""
    names = model.mdp_.state_names
    if model.goals_ is None:
        if text is not None:
            raise ValueError("--goal: the model was fitted without goals; leave it out")
        return None
    if text is None:
        known = [names[g] if names else str(g) for g in model.goals_]
        more = "" if len(known) <= GOALS_SHOWN else f" and {len(known) - GOALS_SHOWN} more"
        raise ValueError(
            f"the model was fitted to trips with goals ({', '.join(known[:GOALS_SHOWN])}{more}): give --goal"
        )
    if names is not None and text in names:
        return int(names.index(text))
    if not (text.isascii() and text.isdigit() and int(text) < model.mdp_.n_states):
        raise ValueError(f"--goal {text!r} is no state: give a name or one of 0 … {model.mdp_.n_states - 1}")
    return int(text)
