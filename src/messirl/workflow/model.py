"""The estimator that plain settings describe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
from messirl.estimators import MESSI, EMMaxEnt, MaxEntIRL
from messirl.estimators.base import IRLEstimator
from messirl.problem.mdp import MDP
from messirl.similarity import RBF, CompleteGraph, Exponential


@dataclass(frozen=True)
class ModelSettings:
    """How to learn.

    method : "messi", "maxent" or "em"; None is messi with unlabelled trajectories, and maxent without
    similarity : "rbf", "exponential" or "complete"
    sigma : of rbf: a number, or "median"
    scale : of exponential: its length
    standardise_counts : whether similarities see counts in units of their spread
    lambda0, theta_max, entropy, step_size, max_iter, tol : as of the estimators
    ridge, standardise : of maxent
    eta : of em: steps between two looks
    solver : "lbfgs", "paper", or None for the default of the method
    features : names with commas between them, of the only features to use; None uses all
    seed : of what is drawn
    """

    method: str | None = None
    lambda0: float = LAMBDA0
    similarity: str = "rbf"
    sigma: float | str = SIGMA
    scale: float = 1.0
    standardise_counts: bool = True
    ridge: float = RIDGE
    standardise: bool = False
    eta: int = STEPS_PER_ROUND
    theta_max: float | None = THETA_MAX
    entropy: str = ENTROPY
    solver: str | None = None
    step_size: float = STEP_SIZE
    max_iter: int = MAX_ITER
    tol: float = TOL
    features: str | None = None
    seed: int = 0


def make_model(settings: ModelSettings, *, unlabelled: bool) -> IRLEstimator:
    """The estimator, not fitted; `unlabelled` says whether there are trajectories of unknown quality."""
    method = settings.method or ("messi" if unlabelled else "maxent")
    solver = settings.solver or (EM_SOLVER if method == "em" else SOLVER)
    _refuse_what_acts_on_nothing(settings, {"method": method, "solver": solver, "similarity": settings.similarity})
    common: dict[str, Any] = {
        "theta_max": settings.theta_max,
        "entropy": settings.entropy,
        "solver": solver,
        "step_size": settings.step_size,
        "max_iter": settings.max_iter,
        "tol": settings.tol,
        "random_state": settings.seed,
    }
    if method == "maxent":
        return MaxEntIRL(ridge=settings.ridge, standardise=settings.standardise, **common)
    if not unlabelled:
        raise ValueError(f"--method {method} needs unlabelled trajectories: say which with --unlabelled")
    if method == "em":
        return EMMaxEnt(steps_per_round=settings.eta, **common)
    if settings.theta_max is None:
        raise ValueError("--theta-max none is for maxent: MESSI's strength is lambda0 / theta_max")
    return MESSI(make_similarity(settings), lambda0=settings.lambda0, **common)


def _refuse_what_acts_on_nothing(settings: ModelSettings, chosen: dict[str, str]) -> None:
    """A setting of another method, solver or similarity is a misunderstanding, not something to pass over."""
    for option, kind, needed in (
        ("ridge", "method", "maxent"),
        ("standardise", "method", "maxent"),
        ("eta", "method", "em"),
        ("step_size", "solver", "paper"),
        ("sigma", "similarity", "rbf"),
        ("scale", "similarity", "exponential"),
    ):
        if getattr(settings, option) != getattr(ModelSettings, option) and chosen[kind] != needed:
            name = f"--{option.replace('_', '-')}"
            raise ValueError(
                f"{name} is of --{kind} {needed}, and would change nothing with --{kind} {chosen[kind]}: leave it "
                f"out, or say --{kind} {needed}"
            )
    if not settings.standardise_counts and chosen["similarity"] == "complete":
        raise ValueError("--no-standardise would change nothing with --similarity complete: leave it out")
    if settings.standardise and not settings.ridge:
        raise ValueError("--standardise is of the ridge, and there is none: say how strong with --ridge")


def make_similarity(settings: ModelSettings) -> Any:
    """The similarity of trajectories."""
    if settings.similarity == "complete":
        return CompleteGraph()
    if settings.similarity == "exponential":
        return Exponential(settings.scale, settings.standardise_counts)
    return RBF(settings.sigma, settings.standardise_counts)


def with_features(mdp: MDP, names: str | None) -> MDP:
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
