"""The options that say how to learn, and the estimator they mean."""

from __future__ import annotations

import argparse

from messirl._words import did_you_mean
from messirl.cli.common import Parser, count, not_negative, number, positive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def add_model(made: Parser) -> None:
    """The method and its numbers."""
    group = made.add_argument_group("method")
    group.add_argument(
        "--method",
        choices=("messi", "maxent", "em"),
        help="messi (default with unlabelled trajectories), maxent (default without), em",
    )
    group.add_argument("--lambda0", type=not_negative, default=0.05, help="strength of MESSI's penalty (0.05)")
    group.add_argument(
        "--similarity", choices=("rbf", "exponential", "complete"), default="rbf", help="of trajectories (rbf)"
    )
    group.add_argument("--sigma", type=_width, default="median", help="of rbf: a number, or median (median)")
    group.add_argument("--scale", type=positive, default=1.0, help="of exponential: its length (1)")
    group.add_argument(
        "--no-standardise", action="store_true", help="similarities see raw counts, not counts in units of their spread"
    )
    group.add_argument("--ridge", type=not_negative, default=0.0, help="of maxent: ρ of its penalty ½ρ‖θ‖² (0)")
    group.add_argument("--eta", type=count, default=10, help="of em: steps between two looks at the data (10)")
    group.add_argument("--theta-max", type=_bound, default=500.0, help="bound on every weight, or none (500)")
    group.add_argument(
        "--entropy",
        choices=("causal", "noncausal"),
        default="causal",
        help="noncausal is the paper's own and needs a horizon (causal)",
    )
    group.add_argument(
        "--solver",
        choices=("lbfgs", "paper"),
        default="lbfgs",
        help="lbfgs finds the optimum, paper takes fixed steps (lbfgs)",
    )
    group.add_argument("--step-size", type=positive, default=1.0, help="of the solver paper (1)")
    group.add_argument("--max-iter", type=count, default=500, help="iterations at most (500)")
    group.add_argument("--tol", type=not_negative, default=1e-6, help="the projected gradient at which to stop (1e-6)")
    group.add_argument("--features", metavar="A,B,…", help="only these features (default: all)")


def make_model(arguments: argparse.Namespace, unlabelled: bool) -> Any:
    """The estimator that the options describe."""
    from messirl.estimators import MESSI, EMMaxEnt, MaxEntIRL

    method = arguments.method or ("messi" if unlabelled else "maxent")
    common: dict[str, Any] = {
        "theta_max": arguments.theta_max,
        "entropy": arguments.entropy,
        "solver": arguments.solver,
        "step_size": arguments.step_size,
        "max_iter": arguments.max_iter,
        "tol": arguments.tol,
        "random_state": arguments.seed,
    }
    if method == "maxent":
        return MaxEntIRL(ridge=arguments.ridge, standardise=not arguments.no_standardise, **common)
    if not unlabelled:
        raise ValueError(f"--method {method} needs unlabelled trajectories: say which with --unlabelled")
    if method == "em":
        return EMMaxEnt(steps_per_round=arguments.eta, **common)
    if arguments.theta_max is None:
        raise ValueError("--theta-max none is for maxent: MESSI's strength is lambda0 / theta_max")
    return MESSI(make_similarity(arguments), lambda0=arguments.lambda0, **common)


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
