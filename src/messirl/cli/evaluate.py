"""`messirl evaluate`: a saved model on held-out trajectories."""

from __future__ import annotations

import argparse

from messirl._numbers import nats, percentage
from messirl.cli.common import Parser, as_json, model_file, note, path
from messirl.cli.data import FILTERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SHOWN = 6  # features that a remark names

DESCRIPTION = (
    "The log-probability a step of held-out trajectories under a saved model, and how often the state it "
    "held most likely was the next one."
)


def add(made: Parser) -> None:
    made.add_argument("model", type=path, metavar="MODEL", help="what messirl fit wrote: model.npz, or its folder")
    made.add_argument("folder", type=path, metavar="FOLDER", help="a problem folder")
    made.add_argument("--test", metavar="WHICH", help=f"which trajectories (default: all). {FILTERS}")
    made.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    from messirl.estimators import load
    from messirl.estimators.uniform import uniform_score
    from messirl.evaluation import next_state_accuracy
    from messirl.io.folder.reader import read_problem
    from messirl.problem.filters import matching

    model = load(model_file(arguments.model))
    problem = read_problem(arguments.folder)
    for text in problem.notes:
        note(text)
    if (problem.mdp.n_states, problem.mdp.n_actions) != (model.mdp_.n_states, model.mdp_.n_actions):
        raise ValueError(
            f"the model has {model.mdp_.n_states} states and {model.mdp_.n_actions} actions, the folder "
            f"{problem.mdp.n_states} and {problem.mdp.n_actions}: evaluate on the problem it was fitted to"
        )
    names = (problem.mdp.state_names, model.mdp_.state_names)
    if None not in names and names[0] != names[1]:
        raise ValueError("the states of the folder have other names: evaluate on the problem the model was fitted to")
    differences = _differences(model.mdp_, problem.mdp)
    if differences:
        note(
            f"the folder is another problem than the one the model was fitted to: {', '.join(differences)}; scores are "
            "of the policy that was learnt there"
        )
    some = problem.trajectories
    if arguments.test is not None:
        some = some[matching(problem.facts, arguments.test, "--test")]
    steps = int((some.lengths - 1).sum())
    score = model.score(some)
    found = {
        "model": str(arguments.model),
        "folder": str(arguments.folder),
        "test": arguments.test,
        "trajectories": len(some),
        "steps": steps,
        "score": score,
        "log_likelihood": score * steps,
        "uniform": uniform_score(model.mdp_, some),
        "next_state_accuracy": next_state_accuracy(model, some),
        "differences": differences,
    }
    if arguments.json:
        print(as_json(found))
    else:
        print(f"{len(some)} trajector{'y' if len(some) == 1 else 'ies'}, {steps} steps")
        print(f"log-probability a step    {nats(score):>10}   (a uniform policy: {nats(found['uniform'])})")
        print(f"most likely next state    {percentage(found['next_state_accuracy'], 1):>10}   of steps")
    return 0


def _differences(own: Any, given: Any) -> list[str]:
    """In what the MDP of a folder differs from that of a model, besides features that were left out of the fit."""
    found = [
        f"{name} {getattr(given, name)}, not {getattr(own, name)}"
        for name in ("discount", "horizon")
        if getattr(own, name) != getattr(given, name)
    ]
    if abs(own.transitions - given.transitions).max() > 1e-9 or (own.allowed != given.allowed).any():
        found.append("other moves")
    if (own.terminal != given.terminal).any():
        found.append("other terminal states")
    names = own.feature_names or tuple(map(str, range(own.n_features)))
    there = given.feature_names or tuple(map(str, range(given.n_features)))
    missing = [name for name in names if name not in there]
    if missing:
        found.append(f"no feature {', '.join(map(repr, missing[:SHOWN]))}")
    if own.state_action != given.state_action:
        found.append("features of other things")
        return found
    rows, others = own.feature_rows, given.feature_rows
    changed = []
    for name in names:
        if name in there:
            mine, theirs = rows[:, [names.index(name)]], others[:, [there.index(name)]]
            size = max(float(abs(mine).max()), float(abs(theirs).max()))
            if float(abs(mine - theirs).max()) > 1e-9 * size:
                changed.append(name)
    if changed:
        found.append(f"other values of {', '.join(map(repr, changed[:SHOWN]))}")
    return found
