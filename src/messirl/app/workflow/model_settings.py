"""Construction of the estimator that plain settings describe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from messirl import _defaults as default
from messirl._docstrings import inherit_documentation
from messirl._text import did_you_mean
from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.estimators.registry import OPTIONS
from messirl.similarity import DynamicTimeWarping, Similarity
from messirl.similarity.base import as_similarity


@dataclass(frozen=True)
class ModelSettings:
    """The settings of an estimator: the options of `messirl fit`, as plain numbers and words.

    Parameters
    ----------
    method : {"messi", "maxent", "em"}, optional
        None: "messi" with unlabelled trajectories, and "maxent" without.
    lambda0 : float
        λ0, the strength of MESSI's penalty.
    similarity : {"rbf", "exponential", "complete", "neighbours", "edit", "dtw", "visited"}
        The similarity of trajectories: of their feature counts or, for the last three, of their states.
    sigma : float or "median"
        The width of "rbf".
    scale : float, optional
        The distance at which "exponential", "edit" or "dtw" is 1/e. None: 1, and 0.5 for "edit".
    standardise_counts : bool
        Whether similarities use counts in units of their spread.
    ridge, standardise : float, bool
        As for `MaxEntIRL`.
    theta_prior : float, optional
        Standard deviation of a normal prior of the weights. None: no prior.
    eta : int
        With "em", the number of steps between two updates of the weights of trajectories.
    theta_max, entropy, step_size, max_iter, tol : float, str, float, int, float
        As for the estimators.
    objective : {"choices", "counts"} or None
        The objective: likelihood of choices, or feature matching. None: the default of the model.
    reference : {"unlabelled"}, optional
        The prior policy: the population policy of the unlabelled trajectories. None: no prior policy.
    reference_strength : float
        The prior strength of that policy, in choices per state.
    unlabelled_weight : float
        The weight of an unlabelled trajectory in the objective, where an expert's has weight 1.
    solver : {"lbfgs", "paper"}, optional
        None: the default of the method.
    features : str, optional
        The names of the features to use, separated by commas. None: all.
    seed : int
        The seed of all random numbers.

    Examples
    --------
    >>> from messirl.app.workflow.model_settings import ModelSettings, make_model
    >>> make_model(ModelSettings(method="maxent", ridge=0.5), unlabelled=False).ridge
    0.5
    """

    method: str | None = None
    lambda0: float = default.LAMBDA0
    similarity: str = "rbf"
    sigma: float | str = default.SIGMA
    scale: float | None = None
    standardise_counts: bool = True
    ridge: float = default.RIDGE
    standardise: bool = False
    theta_prior: float | None = default.THETA_PRIOR
    eta: int = default.STEPS_PER_ROUND
    theta_max: float | None = default.THETA_MAX
    entropy: str = default.ENTROPY
    objective: str | None = default.OBJECTIVE
    reference: str | None = None
    reference_strength: float = default.REFERENCE_STRENGTH
    unlabelled_weight: float = default.UNLABELLED_WEIGHT
    solver: str | None = None
    step_size: float = default.STEP_SIZE
    max_iter: int = default.MAX_ITER
    tol: float = default.TOL
    features: str | None = None
    seed: int = 0

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        inherit_documentation(cls)


def make_model(settings: ModelSettings, *, unlabelled: bool, xy: Floats | None = None) -> Any:
    """Return the estimator, not fitted.

    unlabelled : whether there are trajectories of unknown quality
    xy : (S, 2) coordinates of the states, if known
    """
    method = OPTIONS[settings.method or ("messi" if unlabelled else "maxent")]
    given = {name: value for name, value in vars(settings).items() if (name, value) != ("solver", None)}
    given |= {
        "similarity": make_similarity(settings, xy),
        "steps_per_round": settings.eta,
        "random_state": settings.seed,
    }
    model = method.build(given)
    solver = model.get_params(deep=False).get("solver", "")
    _refuse_what_acts_on_nothing(
        settings, {"method": method.option, "solver": solver, "similarity": settings.similarity}
    )
    if method.unlabelled and not unlabelled:
        raise ValueError(f"--method {method.option} needs unlabelled trajectories: name them with --unlabelled")
    check_reference(settings, unlabelled=unlabelled)
    for name in ("entropy", "solver"):
        _refuse_beyond(settings, name, getattr(model, name))
    if settings.unlabelled_weight and not unlabelled:
        raise ValueError("--unlabelled-weight needs unlabelled trajectories: name them with --unlabelled")
    if method.penalised and settings.theta_max is None:
        raise ValueError("--theta-max none needs --method maxent: MESSI's penalty has the strength lambda0 / theta_max")
    return model


def _refuse_what_acts_on_nothing(settings: ModelSettings, chosen: dict[str, str | None]) -> None:
    """Refuse settings of another method, solver or similarity, which would have no effect."""
    for option, kind, *needed in (
        ("ridge", "method", "maxent"),
        ("standardise", "method", "maxent"),
        ("eta", "method", "em"),
        ("step_size", "solver", "paper"),
        ("sigma", "similarity", "rbf"),
        ("scale", "similarity", "exponential", "edit", "dtw"),
    ):
        if getattr(settings, option) != getattr(ModelSettings, option) and chosen[kind] not in needed:
            name, those = f"--{option.replace('_', '-')}", " or ".join(needed)
            raise ValueError(
                f"{name} has no effect with --{kind} {chosen[kind]}, only with {those}: omit it, or use "
                f"--{kind} {needed[0]}"
            )
    if settings.theta_prior is not None and chosen["method"] == "em":
        raise ValueError("--theta-prior has no effect with --method em: omit it")
    if settings.theta_prior is not None and chosen["solver"] == "paper":
        raise ValueError("--theta-prior cannot be combined with --solver paper, which is Alg. 1: omit it")
    if settings.unlabelled_weight != ModelSettings.unlabelled_weight and chosen["method"] == "em":
        raise ValueError("--unlabelled-weight has no effect with --method em, which has its own weights: omit it")
    of_counts = chosen["similarity"] != "dtw" and "standardise" in as_similarity(chosen["similarity"]).get_params()
    if not settings.standardise_counts and not of_counts:
        raise ValueError(f"--no-standardise has no effect with --similarity {chosen['similarity']}: omit it")
    if settings.standardise and not settings.ridge:
        raise ValueError("--standardise has no effect without a ridge: give its strength with --ridge")


def _refuse_beyond(settings: ModelSettings, option: str, chosen: str) -> None:
    """Refuse choices and prior policies with other models or solvers than the one that supports them."""
    only = {"entropy": "causal", "solver": "lbfgs"}[option]
    beyond = {"--objective choices": settings.objective == "choices", "--reference": settings.reference is not None}
    for words, said in beyond.items():
        if said and chosen != only:
            raise ValueError(f"{words} cannot be combined with --{option} {chosen}: omit it, or use --{option} {only}")


def check_reference(settings: Any, *, unlabelled: bool) -> None:
    """Refuse a prior policy without unlabelled trajectories, and a prior strength without a prior policy."""
    if settings.reference is not None and not unlabelled:
        raise ValueError(f"--reference {settings.reference} needs unlabelled trajectories: name them with --unlabelled")
    if settings.reference is None and settings.reference_strength != default.REFERENCE_STRENGTH:
        raise ValueError(
            "--reference-strength has no effect without --reference unlabelled: give it, or omit --reference-strength"
        )


def make_similarity(settings: ModelSettings, xy: Floats | None = None) -> Any:
    """Return the similarity that the settings describe.

    xy : (S, 2) coordinates of the states, if known
    """
    if settings.similarity == "dtw":
        if xy is None or not np.isfinite(xy).all():
            raise ValueError("--similarity dtw needs coordinates of every state: give x and y, or use edit")
        made: Similarity = DynamicTimeWarping(xy)
    else:
        made = as_similarity(settings.similarity)
    asked = {"sigma": settings.sigma, "scale": settings.scale, "standardise": settings.standardise_counts}
    own = made.get_params()
    return made.set_params(**{name: value for name, value in asked.items() if name in own and value is not None})


def with_features(mdp: MDP, names: str | None) -> MDP:
    """Return the MDP with the features that `--features` names, or with all of them."""
    return mdp if names is None else restricted(mdp, named_features("--features", names, mdp.feature_ids))


def restricted(mdp: MDP, names: Sequence[str]) -> MDP:
    """Return the MDP with these features only."""
    columns = [mdp.feature_ids.index(name) for name in names]
    features = mdp.features[..., columns] if mdp.features.ndim == 3 else mdp.features[:, columns]
    return mdp.replace(features=features, feature_names=list(names))


def named_features(option: str, text: str, known: Sequence[str]) -> list[str]:
    """Return the features that the text of an option names, separated by commas; raise if one is unknown."""
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    for name in wanted:
        if name not in known:
            close = did_you_mean(name, known)
            raise ValueError(f"{option}: there is no feature {name!r}; there are {', '.join(known)}{close}")
    if not wanted:
        raise ValueError(f"{option} names no feature: give at least one")
    twice = next((name for name in wanted if wanted.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{option} names {twice!r} twice: name it once")
    return wanted
