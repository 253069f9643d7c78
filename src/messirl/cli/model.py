"""The options that say how to learn, and the estimator they mean."""

from __future__ import annotations

import argparse

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
from messirl._words import did_you_mean
from messirl.cli.common import Parser, count, not_negative, number, positive
from messirl.estimators.methods import OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


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
        "--no-standardise", action="store_true", help="similarities see raw counts, not counts in units of their spread"
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


def make_model(arguments: argparse.Namespace, unlabelled: bool) -> Any:
    """The estimator that the options describe."""
    method = OPTIONS[arguments.method or ("messi" if unlabelled else "maxent")]
    settings: dict[str, Any] = {
        "similarity": make_similarity(arguments),
        "lambda0": arguments.lambda0,
        "ridge": arguments.ridge,
        "standardise": arguments.standardise,
        "steps_per_round": arguments.eta,
        "theta_max": arguments.theta_max,
        "entropy": arguments.entropy,
        "step_size": arguments.step_size,
        "max_iter": arguments.max_iter,
        "tol": arguments.tol,
        "random_state": arguments.seed,
    } | ({} if arguments.solver is None else {"solver": arguments.solver})
    model = method.build(settings)
    solver = model.get_params(deep=False).get("solver", "")
    _refuse_what_acts_on_nothing(
        arguments, {"method": method.option or "", "solver": solver, "similarity": arguments.similarity}
    )
    if method.unlabelled and not unlabelled:
        raise ValueError(f"--method {method.option} needs unlabelled trajectories: say which with --unlabelled")
    if method.penalised and arguments.theta_max is None:
        raise ValueError("--theta-max none is for maxent: MESSI's strength is lambda0 / theta_max")
    return model


def _refuse_what_acts_on_nothing(arguments: argparse.Namespace, chosen: dict[str, str]) -> None:
    """An option of another method, solver or similarity is a misunderstanding, not something to pass over."""
    for option, default, kind, needed in (
        ("ridge", RIDGE, "method", "maxent"),
        ("standardise", False, "method", "maxent"),
        ("eta", STEPS_PER_ROUND, "method", "em"),
        ("step_size", STEP_SIZE, "solver", "paper"),
        ("sigma", SIGMA, "similarity", "rbf"),
        ("scale", 1.0, "similarity", "exponential"),
    ):
        if getattr(arguments, option) != default and chosen[kind] != needed:
            name = f"--{option.replace('_', '-')}"
            raise ValueError(
                f"{name} is of --{kind} {needed}, and would change nothing with --{kind} {chosen[kind]}: leave it "
                f"out, or say --{kind} {needed}"
            )
    if arguments.no_standardise and chosen["similarity"] == "complete":
        raise ValueError("--no-standardise would change nothing with --similarity complete: leave it out")
    if arguments.standardise and not arguments.ridge:
        raise ValueError("--standardise is of the ridge, and there is none: say how strong with --ridge")


def make_similarity(arguments: argparse.Namespace) -> Any:
    from messirl.similarity import RBF, CompleteGraph, Exponential

    standardise = not arguments.no_standardise
    if arguments.similarity == "complete":
        return CompleteGraph()
    if arguments.similarity == "exponential":
        return Exponential(arguments.scale, standardise)
    return RBF(arguments.sigma, standardise)


def with_features(mdp: Any, names: str | None) -> Any:
    """The MDP with some of its features only."""
    if names is None:
        return mdp
    known = list(mdp.feature_names or map(str, range(mdp.n_features)))
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if name not in known:
            close = did_you_mean(name, known)
            raise ValueError(f"--features: there is no feature {name!r}; there are {', '.join(known)}{close}")
    if not wanted:
        raise ValueError("--features names none: give at least one")
    columns = [known.index(name) for name in wanted]
    features = mdp.features[..., columns] if mdp.features.ndim == 3 else mdp.features[:, columns]
    return mdp.replace(features=features, feature_names=wanted)


def _width(text: str) -> float | str:
    return text if text == "median" else number(text, lambda x: x > 0, "median or a number above 0")


def _bound(text: str) -> float | None:
    return None if text == "none" else number(text, lambda x: x > 0, "none or a number above 0")
