"""`messirl show`: summarise a problem folder or a saved model."""

from __future__ import annotations

import argparse

from messirl._formatting import format_significant
from messirl.app.cli._parser import Parser, as_json, model_file, one_line, path, print_notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DESCRIPTION = (
    "Summarise a problem folder (states, transitions, features, trajectories, columns for filters) or a saved model."
)


def add(made: Parser) -> None:
    """Declare the arguments of `messirl show`."""
    made.add_argument(
        "path", type=path, metavar="PATH", help="a problem folder, or model.npz that messirl fit wrote, or its folder"
    )
    made.add_argument("--json", action="store_true", help="print JSON")
    made.add_argument(
        "--picture", type=path, metavar="FILE", help="also draw the visits to each state of the folder (.png, .svg)"
    )
    made.add_argument("--force", action="store_true", help="replace an existing file of --picture")


def run(arguments: argparse.Namespace) -> int:
    """Print a summary of a problem folder or a saved model; draw the visits of a folder if requested."""
    if not arguments.path.exists():
        raise ValueError(
            f"{arguments.path} does not exist: give a problem folder, or a model.npz that messirl fit wrote"
        )
    if arguments.path.is_file() or (arguments.path / "model.npz").is_file():
        from messirl.loading import load

        if arguments.picture is not None:
            raise ValueError("--picture needs a problem folder: the report of messirl fit has the pictures of a model")
        found = _model(load(model_file(arguments.path)))
    else:
        from messirl.io.folder.reader import read_problem

        if arguments.picture is not None:
            from messirl._files import check_writable

            if arguments.picture.is_file() and not arguments.force:
                raise ValueError(
                    f"--picture {arguments.picture} exists already: give another name, or --force to replace it"
                )
            check_writable(arguments.picture)
        problem = read_problem(arguments.path)
        found = _problem(problem)
        if arguments.json:
            found["notes"] = problem.notes
        else:
            print_notes(problem)
        if arguments.picture is not None:
            from messirl.app.report.visit_map import draw_visits

            draw_visits(problem, arguments.picture)
    print(as_json(found) if arguments.json else _text(found))
    return 0


def _mdp(mdp: Any) -> dict[str, Any]:
    return {
        "states": mdp.n_states,
        "actions": mdp.n_actions,
        "moves": int(mdp.transitions.nnz),
        "deterministic": mdp.deterministic,
        "terminal states": int(mdp.terminal.sum()),
        "discount": mdp.discount,
        "horizon": mdp.horizon,
        "features": "of states and actions" if mdp.state_action else "of states",
        "feature names": list(mdp.feature_names or range(mdp.n_features)),
    }


def _problem(problem: Any) -> dict[str, Any]:
    import numpy as np

    from messirl.data.filters import most_frequent

    some = problem.trajectories
    lengths = some.lengths
    out = _mdp(problem.mdp) | {
        "trajectories": len(some),
        "states per trajectory": "none"
        if len(some) == 0
        else f"{lengths.min()} to {lengths.max()}, median {np.median(lengths):g}",
        "with actions": some.actions is not None,
        "goals": 0 if some.goals is None else int(np.unique(some.goals).size),
        "coordinates": problem.xy is not None,
    }
    return out | {"columns of trajectory_meta": {name: most_frequent(values) for name, values in problem.meta.items()}}


def _model(model: Any) -> dict[str, Any]:
    from messirl.app.workflow.record import parameters_of, weights

    return {
        "method": type(model).__name__,
        "converged": bool(model.converged_),
        "iterations": getattr(model, "n_iter_", None),
        "objective": getattr(model, "objective_", None),
        "theta": weights(model),
        "settings": parameters_of(model),
        "problem": _mdp(model.mdp_),
    }


def _text(found: dict[str, Any], indent: str = "") -> str:
    lines = []
    if all(isinstance(value, float) for value in found.values()):  # a column of numbers
        found = dict(zip(found, format_significant(found.values(), 6), strict=True))
        return "\n".join(f"{indent}{one_line(key):<{max(map(len, found)) + 2}}{text}" for key, text in found.items())
    width = max(len(one_line(key)) for key in found) + 2
    for key, value in found.items():
        if isinstance(value, dict):
            lines += [f"{indent}{key}", _text(value, indent + "  ") if value else f"{indent}  none"]
        else:
            lines.append(f"{indent}{one_line(key):<{width}}{_word(value)}")
    return "\n".join(lines)


def _word(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, list):
        return one_line(", ".join(map(str, value)))
    return f"{value:.6g}" if isinstance(value, float) else one_line(str(value))
