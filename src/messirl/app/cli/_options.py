"""The options that several commands share: which trajectories to take, and how to learn."""

from __future__ import annotations

from messirl import _defaults as default
from messirl.app.cli._parser import Once, Parser, add_with_default, count, finite, not_negative, path, positive, seed
from messirl.estimators.registry import METHODS, OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FILTERS = (
    "WHICH is a filter on the columns of trajectory_meta and on trajectory_id: column, comparison "
    '(= != < <= > >=), value, joined by and / or; for example "role = expert and mouse != B1".'
)


def add_data(made: Parser) -> None:
    """Add FOLDER and the options that divide its trajectories."""
    made.add_argument("folder", type=path, metavar="FOLDER", help="a problem folder")
    add_split(made)
    made.set_defaults(seed=0)


def add_split(made: Parser) -> None:
    """Add the options that divide the trajectories of a folder."""
    group = made.add_argument_group("trajectories", FILTERS)
    for name, text in (
        ("--expert", "the expert's (default: all that are not named otherwise)"),
        ("--unlabelled", "those of unknown quality (default: none)"),
        ("--test", "held out, for the score (default: none)"),
    ):
        group.add_argument(name, action=Once, metavar="WHICH", help=text)
    group.add_argument("--n-expert", type=count, metavar="N", help="draw N of the expert's at random")
    group.add_argument("--n-unlabelled", type=count, metavar="N", help="draw N of the unlabelled at random")
    group.add_argument("--seed", type=seed, help="seed of these draws (0)")


def add_streamed(made: Parser) -> None:
    """Add the option for unlabelled trajectories that stay in files."""
    group = made.add_argument_group("trajectories in files")
    group.add_argument(
        "--unlabelled-from",
        type=path,
        help="those of unknown quality, where they need not fit in memory: a Parquet file or a folder of them with "
        "the columns trajectory_id, step, state and, where known, action, sorted by trajectory and step",
    )


def add_results(made: Parser, out: str, alone: str, force: str = "an earlier result in --out") -> None:
    """Add the folder of the results, and the options that say what is written there and printed.

    alone : what is written without a report; the summary comes last
    force : what --force replaces; nothing: there is no such option
    """
    made.add_argument("--out", type=path, default=out, help=f"folder of the results ({out})")
    made.set_defaults(usual_out=out)
    if force:
        made.add_argument("--force", action="store_true", help=f"replace {force}")
    made.add_argument("--no-report", dest="report", action="store_false", help=f"{alone} alone")
    made.add_argument("--json", action="store_true", help=f"print {alone.split()[-1]} instead of a summary")


def add_cluster(made: Parser) -> None:
    """Add the option that sends the work to a cluster; see `executor`."""
    made.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="do the work on the Dask cluster whose scheduler is at ADDRESS, as tcp://10.0.0.1:8786 (default: here)",
    )


def executor(address: str | None) -> Any:
    """A context that gives the executor of a cluster or, without an address, None: the work is done here."""
    import contextlib

    if address is None:
        return contextlib.nullcontext()
    from messirl.cluster import connect

    return connect(address)


def add_model(made: Parser) -> None:
    """Add the options for the method and its parameters."""
    group = made.add_argument_group("method")
    group.add_argument(
        "--method",
        type=_method,
        choices=tuple(OPTIONS),
        help="messi (default with unlabelled trajectories), maxent (default without), em; others: messirl compare",
    )
    add_with_default(group, "--lambda0", not_negative, default.LAMBDA0, "strength of the penalty")
    group.add_argument(
        "--similarity",
        choices=(*default.SIMILARITIES, "dtw"),
        default="rbf",
        help="of trajectories: of what they collect (rbf, exponential, complete, neighbours), or of the states they "
        "visit: in order (edit), by x and y (dtw), in any order (visited) (rbf)",
    )
    add_with_default(group, "--sigma", _width, default.SIGMA, "of rbf: a number, or median")
    group.add_argument(
        "--scale", type=positive, help="of exponential, edit and dtw: the distance at which they are 1/e (1, 0.5 and 1)"
    )
    group.add_argument(
        "--no-standardise",
        dest="standardise_counts",
        action="store_false",
        help="similarities see raw counts, not counts in units of their spread",
    )
    add_with_default(group, "--ridge", not_negative, default.RIDGE, "of maxent: ρ of ½ρ‖θ‖²")
    group.add_argument(
        "--standardise", action="store_true", help="of maxent: the ridge sees θ in units of the counts' spread"
    )
    prior = "of messi and maxent: standard deviation of a normal prior of the weights, in their own units, or none"
    add_with_default(group, "--theta-prior", bound, default.THETA_PRIOR, prior)
    add_with_default(
        group,
        "--eta",
        count,
        default.STEPS_PER_ROUND,
        "of em: steps of the search before trajectories are weighed anew",
    )
    add_with_default(group, "--theta-max", bound, default.THETA_MAX, "bound on every weight, or none")
    add_objective(group)
    weight = "of an unlabelled trajectory among the experts', where theirs is 1: light pooling"
    add_with_default(group, "--unlabelled-weight", not_negative, default.UNLABELLED_WEIGHT, weight)
    group.add_argument(
        "--entropy",
        choices=("causal", "noncausal"),
        default=default.ENTROPY,
        help=f"noncausal is the paper's own and needs a horizon ({default.ENTROPY})",
    )
    group.add_argument(
        "--solver",
        choices=("lbfgs", "paper"),
        help=f"lbfgs finds the optimum, paper takes fixed steps ({default.SOLVER}; em: {default.EM_SOLVER})",
    )
    add_with_default(group, "--step-size", positive, default.STEP_SIZE, "of the solver paper")
    add_with_default(group, "--max-iter", count, default.MAX_ITER, "iterations at most")
    optimum = "how far a weight may be from its optimum, relative to its size or its unit"
    add_with_default(group, "--tol", not_negative, default.TOL, optimum)
    group.add_argument("--features", action=Once, metavar="A,B,…", help="only these features (default: all)")


def add_objective(group: Any) -> None:
    """Add the options for what is made likely, and for the base policy it is measured against."""
    group.add_argument(
        "--objective",
        choices=("choices", "counts"),
        default=default.OBJECTIVE,
        help="make likely the choices that the experts made, or their feature counts (choices; with --entropy "
        "noncausal or --solver paper: counts)",
    )
    group.add_argument(
        "--reference",
        choices=("unlabelled",),
        help="base policy: what is usual among the unlabelled trajectories (default: none)",
    )
    strength = "of the prior of --reference, in choices per state"
    add_with_default(group, "--reference-strength", positive, default.REFERENCE_STRENGTH, strength)


def _method(text: str) -> str:
    """A method of `messirl fit`; of others an error says where they are."""
    import argparse

    others = {name.lower(): name for name, method in METHODS.items() if method.option is None}
    if text.lower() in others:
        there = others[text.lower()]
        raise argparse.ArgumentTypeError(f"{text} is fitted and judged by messirl compare FOLDER --methods {there}")
    return text


def _width(text: str) -> float | str:
    return text if text == "median" else finite(text, lambda x: x > 0, "median or a number above 0")


def bound(text: str) -> float | None:
    """A number above 0, or none."""
    return None if text == "none" else finite(text, lambda x: x > 0, "none or a number above 0")
