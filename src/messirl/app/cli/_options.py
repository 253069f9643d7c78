"""Options that several commands share: selection of trajectories, method and results."""

from __future__ import annotations

from messirl import _defaults as default
from messirl.app.cli._parser import Once, Parser, add_with_default, count, finite, not_negative, path, positive, seed
from messirl.estimators.registry import METHODS, OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FILTERS = (
    "WHICH is a filter on trajectory_id and the columns of trajectory_meta: comparisons of a column and a value "
    '(= != < <= > >=), joined by and / or; for example "role = expert and mouse != B1".'
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
        ("--expert", "expert trajectories (all that no other option selects)"),
        ("--unlabelled", "trajectories of unknown quality (none)"),
        ("--test", "trajectories held out for the score (none)"),
    ):
        group.add_argument(name, action=Once, metavar="WHICH", help=text)
    group.add_argument("--n-expert", type=count, metavar="N", help="use N random expert trajectories")
    group.add_argument("--n-unlabelled", type=count, metavar="N", help="use N random unlabelled trajectories")
    group.add_argument("--seed", type=seed, help="seed of these random choices (0)")


def add_streamed(made: Parser) -> None:
    """Add the option for unlabelled trajectories that are streamed from files."""
    group = made.add_argument_group("trajectories in files")
    group.add_argument(
        "--unlabelled-from",
        type=path,
        help="trajectories of unknown quality that need not fit in memory: a Parquet file or a folder of them, with "
        "columns trajectory_id, step, state and, if known, action, sorted by trajectory and step",
    )


def add_results(made: Parser, out: str, alone: str, force: str = "an earlier result in --out") -> None:
    """Add the folder of the results, and the options for its contents and for the printed output.

    alone : names of the files that are written without a report; the summary comes last
    force : what --force replaces; empty: the option is not added
    """
    made.add_argument("--out", type=path, default=out, help=f"folder for the results ({out})")
    made.set_defaults(usual_out=out)
    if force:
        made.add_argument("--force", action="store_true", help=f"replace {force}")
    made.add_argument("--no-report", dest="report", action="store_false", help=f"write only {alone}")
    made.add_argument("--json", action="store_true", help=f"print {alone.split()[-1]} instead of a summary")


def add_cluster(made: Parser) -> None:
    """Add the option that sends the work to a cluster; see `executor`."""
    made.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="run on the Dask cluster whose scheduler is at ADDRESS, such as tcp://10.0.0.1:8786 (this machine)",
    )


def executor(address: str | None) -> Any:
    """Return a context with the executor of a cluster, or with None (work in this process) without an address."""
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
        help="messi (default with unlabelled trajectories), maxent (default without) or em; messirl compare has others",
    )
    add_with_default(group, "--lambda0", not_negative, default.LAMBDA0, "strength of the penalty of messi")
    group.add_argument(
        "--similarity",
        choices=(*default.SIMILARITIES, "dtw"),
        default="rbf",
        help="similarity of trajectories, from their feature counts (rbf, exponential, complete, neighbours) or from "
        "the states they visit: in order (edit), by x and y (dtw) or in any order (visited) (rbf)",
    )
    add_with_default(group, "--sigma", _width, default.SIGMA, "width of the rbf similarity: a number, or median")
    group.add_argument(
        "--scale", type=positive, help="distance at which exponential, edit and dtw are 1/e (1, 0.5 and 1)"
    )
    group.add_argument(
        "--no-standardise",
        dest="standardise_counts",
        action="store_false",
        help="similarities use raw feature counts, not counts in units of their spread",
    )
    add_with_default(group, "--ridge", not_negative, default.RIDGE, "with maxent: ρ of the ridge penalty ½ρ‖θ‖²")
    group.add_argument(
        "--standardise", action="store_true", help="with maxent: the ridge uses θ in units of the spread of the counts"
    )
    prior = "with messi and maxent: standard deviation of a normal prior on θ times the spread of its feature, or none"
    add_with_default(group, "--theta-prior", bound, default.THETA_PRIOR, prior)
    add_with_default(
        group,
        "--eta",
        count,
        default.STEPS_PER_ROUND,
        "with em: search steps per E-step",
    )
    add_with_default(group, "--theta-max", bound, default.THETA_MAX, "bound on every weight, or none")
    add_objective(group)
    weight = "weighted pooling: weight of an unlabelled trajectory in the likelihood; an expert one has weight 1"
    add_with_default(group, "--unlabelled-weight", not_negative, default.UNLABELLED_WEIGHT, weight)
    group.add_argument(
        "--entropy",
        choices=("causal", "noncausal"),
        default=default.ENTROPY,
        help=f"noncausal is the model of the paper and needs a horizon ({default.ENTROPY})",
    )
    group.add_argument(
        "--solver",
        choices=("lbfgs", "paper"),
        help=f"lbfgs finds the optimum, paper takes steps of fixed size ({default.SOLVER}; em: {default.EM_SOLVER})",
    )
    add_with_default(group, "--step-size", positive, default.STEP_SIZE, "step size of the solver paper")
    add_with_default(group, "--max-iter", count, default.MAX_ITER, "maximum number of iterations")
    optimum = "largest distance of a weight θ from its optimum, relative to max(|θ|, 1 / the spread of its feature)"
    add_with_default(group, "--tol", not_negative, default.TOL, optimum)
    group.add_argument("--features", action=Once, metavar="A,B,…", help="use only these features (all)")


def add_objective(group: Any) -> None:
    """Add the options for the objective and the prior policy."""
    group.add_argument(
        "--objective",
        choices=("choices", "counts"),
        default=default.OBJECTIVE,
        help="maximise the likelihood of the choices of the experts, or match their feature counts (choices; with "
        "--entropy noncausal or --solver paper: counts)",
    )
    group.add_argument(
        "--reference",
        choices=("unlabelled",),
        help="prior policy, estimated from the unlabelled trajectories (none)",
    )
    strength = "strength of the smoothing of --reference, in choices per state"
    add_with_default(group, "--reference-strength", positive, default.REFERENCE_STRENGTH, strength)


def _method(text: str) -> str:
    """Check the name of a method; an error names the command for methods that `messirl fit` does not have."""
    import argparse

    others = {name.lower(): name for name, method in METHODS.items() if method.option is None}
    if text.lower() in others:
        there = others[text.lower()]
        raise argparse.ArgumentTypeError(f"{text} is available in messirl compare FOLDER --methods {there}")
    return text


def _width(text: str) -> float | str:
    return text if text == "median" else finite(text, lambda x: x > 0, "median or a number > 0")


def bound(text: str) -> float | None:
    """Convert an argument to a number > 0, or to None for `none`."""
    return None if text == "none" else finite(text, lambda x: x > 0, "none or a number > 0")
