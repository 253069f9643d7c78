"""The options that several commands have: which trajectories to take, and how to learn."""

from __future__ import annotations

from messirl._defaults import (
    EM_SOLVER,
    ENTROPY,
    LAMBDA0,
    MAX_ITER,
    RIDGE,
    SIGMA,
    SOLVER,
    STEP_SIZE,
    STEPS_PER_ROUND,
    THETA_MAX,
    TOL,
)
from messirl.cli.common import Parser, count, not_negative, number_that, path, positive, seed
from messirl.estimators.methods import OPTIONS

FILTERS = (
    "WHICH is a filter on the columns of trajectory_meta and on trajectory_id: column, comparison "
    '(= != < <= > >=), value, joined by and / or; for example "role = expert and mouse != B1".'
)


def add_data(made: Parser) -> None:
    """FOLDER and the options that divide its trajectories."""
    made.add_argument("folder", type=path, metavar="FOLDER", help="a problem folder")
    group = made.add_argument_group("trajectories", FILTERS)
    group.add_argument("--expert", metavar="WHICH", help="the expert's (default: all that are not named otherwise)")
    group.add_argument("--unlabelled", metavar="WHICH", help="those of unknown quality (default: none)")
    group.add_argument("--test", metavar="WHICH", help="held out, for the score (default: none)")
    group.add_argument("--n-expert", type=count, metavar="N", help="draw N of the expert's at random")
    group.add_argument("--n-unlabelled", type=count, metavar="N", help="draw N of the unlabelled at random")
    group.add_argument("--seed", type=seed, default=0, help="seed of these draws (0)")


def add_model(made: Parser) -> None:
    """The method and its numbers."""
    group = made.add_argument_group("method")
    group.add_argument(
        "--method",
        choices=tuple(OPTIONS),
        help="messi (default with unlabelled trajectories), maxent (default without), em",
    )
    group.add_argument("--lambda0", type=not_negative, default=LAMBDA0, help=f"strength of the penalty ({LAMBDA0:g})")
    group.add_argument(
        "--similarity", choices=("rbf", "exponential", "complete"), default="rbf", help="of trajectories (rbf)"
    )
    group.add_argument("--sigma", type=_width, default=SIGMA, help=f"of rbf: a number, or median ({SIGMA})")
    group.add_argument("--scale", type=positive, default=1.0, help="of exponential: its length (1)")
    group.add_argument(
        "--no-standardise",
        dest="standardise_counts",
        action="store_false",
        help="similarities see raw counts, not counts in units of their spread",
    )
    group.add_argument("--ridge", type=not_negative, default=RIDGE, help=f"of maxent: ρ of ½ρ‖θ‖² ({RIDGE:g})")
    group.add_argument(
        "--standardise", action="store_true", help="of maxent: the ridge sees θ in units of the counts' spread"
    )
    group.add_argument(
        "--eta", type=count, default=STEPS_PER_ROUND, help=f"of em: steps between two looks ({STEPS_PER_ROUND})"
    )
    group.add_argument(
        "--theta-max", type=_bound, default=THETA_MAX, help=f"bound on every weight, or none ({THETA_MAX:g})"
    )
    group.add_argument(
        "--entropy",
        choices=("causal", "noncausal"),
        default=ENTROPY,
        help=f"noncausal is the paper's own and needs a horizon ({ENTROPY})",
    )
    group.add_argument(
        "--solver",
        choices=("lbfgs", "paper"),
        help=f"lbfgs finds the optimum, paper takes fixed steps ({SOLVER}; em: {EM_SOLVER})",
    )
    group.add_argument("--step-size", type=positive, default=STEP_SIZE, help=f"of the solver paper ({STEP_SIZE:g})")
    group.add_argument("--max-iter", type=count, default=MAX_ITER, help=f"iterations at most ({MAX_ITER})")
    group.add_argument(
        "--tol",
        type=not_negative,
        default=TOL,
        help=f"how far a weight may be from its optimum, relative to its size or its unit ({TOL:g})",
    )
    group.add_argument("--features", metavar="A,B,…", help="only these features (default: all)")


def _width(text: str) -> float | str:
    return text if text == "median" else number_that(text, lambda x: x > 0, "median or a number above 0")


def _bound(text: str) -> float | None:
    return None if text == "none" else number_that(text, lambda x: x > 0, "none or a number above 0")
