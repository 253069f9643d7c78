"""Construction of the estimator that plain settings describe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from typing import Any

import numpy as np

from messirl._docstrings import inherit_documentation
from messirl._parameters import SETTINGS, Parameter, default
from messirl._text import did_you_mean, join_names
from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.estimators.registry import METHODS, Method, method_named
from messirl.similarity.registry import SIMILARITIES

OF_BASELINES = ("lambda0", "sigma", "scale", "standardise_counts")  # act on the baselines of a maximum-entropy fit


def record_of(entries: Iterable[Parameter]) -> Any:
    """Return a frozen dataclass with a documented field for each of these parameters."""
    entries = list(entries)
    fields = [(one.setting, Any, field(default=one.default)) for one in entries]
    made = make_dataclass("_", fields, frozen=True)
    lines = [line for one in entries for line in (f"{one.setting} : {one.type_text}", f"    {one.help_text}.")]
    made.__doc__ = "\n".join(["Parameters of estimators.", "", "Parameters", "----------", *lines])
    return made


ModelParameters: Any = record_of([Parameter("method", "choice", None), *SETTINGS.values()])


@dataclass(frozen=True)
class ModelSettings(ModelParameters):
    """The settings of an estimator: the options of `messirl fit`, as plain numbers and words.

    Parameters
    ----------
    method : str, optional
        The name of a method of the registry, in any case. None: "messi" with unlabelled trajectories, and "maxent"
        without.
    solver : {"lbfgs", "paper"}, optional
        The search for θ. None: that of the method.
    similarity : str
        The name of a similarity of trajectories.
    features : str, optional
        The names of the features to use, separated by commas. None: all.
    seed : int
        The seed of all random numbers.
    given : collection of str, optional
        The names of the parameters to pass to the estimator, which has its own defaults for the others. None: those
        that differ from the defaults here.

    Examples
    --------
    >>> from messirl.app.workflow.model_settings import ModelSettings, make_model
    >>> make_model(ModelSettings(method="maxent", ridge=0.5), unlabelled=False).ridge
    0.5
    """

    solver: str | None = None
    similarity: str = "rbf"
    features: str | None = None
    seed: int = 0
    given: frozenset[str] | None = None

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        inherit_documentation(cls)

    @property
    def changed(self) -> list[str]:
        """The names of the parameters that differ from their defaults."""
        return [name for name in SETTINGS if getattr(self, name) != self.__dataclass_fields__[name].default]

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments for the estimator."""
        names = self.changed if self.given is None else self.given
        return {SETTINGS[name].name: getattr(self, name) for name in names} | {"random_state": self.seed}


inherit_documentation(ModelSettings)


def make_model(settings: ModelSettings, *, unlabelled: bool, xy: Floats | None = None) -> Any:
    """Return the estimator, not fitted.

    unlabelled : whether there are trajectories of unknown quality
    xy : (S, 2) coordinates of the states, if known
    """
    method = chosen_method(settings, unlabelled=unlabelled)
    model = method.build(settings.arguments | {"similarity": make_similarity(settings, xy)})
    _refuse_unused_settings(settings, method, model)
    if method.unlabelled and not unlabelled and settings.base == default("base"):
        raise ValueError(f"`method` {method.option} needs unlabelled trajectories: name them with `unlabelled`")
    check_reference(settings, unlabelled=unlabelled)
    if settings.unlabelled_weight and not unlabelled:
        raise ValueError("`unlabelled_weight` needs unlabelled trajectories: name them with `unlabelled`")
    if method.penalised and settings.theta_max is None:
        raise ValueError("`theta_max` none needs `method` maxent: MESSI's penalty has the strength lambda0 / theta_max")
    model._check_arguments()
    return model


def chosen_method(settings: ModelSettings, *, unlabelled: bool) -> Method:
    """Return the method that settings name or, if they name none, the usual one."""
    return method_named(settings.method or ("messi" if unlabelled else "maxent"))


def _refuse_unused_settings(settings: ModelSettings, method: Method, model: Any) -> None:
    """Refuse settings of another method, solver or similarity, which would have no effect."""
    of_methods = {one.option: one.parameters for one in METHODS.values()}
    of_similarities = {name: one.parameters for name, one in SIMILARITIES.items()}
    for name in settings.changed:
        if name not in OF_BASELINES or not method.maximum_entropy:
            _refuse(name, SETTINGS[name].name, "method", method.option, of_methods)
        elif name in ("sigma", "scale"):
            _refuse(name, name, "similarity", settings.similarity, of_similarities)
    if "step_size" in settings.changed:
        _refuse("step_size", "step_size", "solver", model.solver, {"lbfgs": [], "paper": ["step_size"]})
    if not settings.standardise_counts and "standardise" not in of_similarities[settings.similarity]:
        raise ValueError(f"`standardise_counts` has no effect with `similarity` {settings.similarity}: omit it")
    if settings.standardise and not settings.ridge:
        raise ValueError("`standardise` has no effect without a ridge: give its strength with `ridge`")


def _refuse(name: str, parameter: str, kind: str, chosen: str, known: Mapping[str, Sequence[str]]) -> None:
    """Refuse a setting if the chosen method, solver or similarity does not have its parameter."""
    if parameter not in known[chosen]:
        others = [other for other, names in known.items() if parameter in names]
        first = f"or use `{kind}` {others[0]}" if others else "or another method"
        raise ValueError(
            f"`{name}` has no effect with `{kind}` {chosen}, only with {join_names(others)}: omit it, {first}"
        )


def check_reference(settings: Any, *, unlabelled: bool) -> None:
    """Refuse a prior policy without unlabelled trajectories, and a prior strength without a prior policy."""
    if settings.reference is not None and not unlabelled:
        raise ValueError(f"`reference` {settings.reference} needs unlabelled trajectories: name them with `unlabelled`")
    if settings.reference is None and settings.reference_strength != default("reference_strength"):
        raise ValueError(
            "`reference_strength` has no effect without `reference` unlabelled: give it, or omit `reference_strength`"
        )


def make_similarity(settings: ModelSettings, xy: Floats | None = None) -> Any:
    """Return the similarity that the settings describe.

    xy : (S, 2) coordinates of the states, if known
    """
    entry = SIMILARITIES[settings.similarity]
    if entry.coordinates and (xy is None or not np.isfinite(xy).all()):
        raise ValueError(f"`similarity` {entry.name} needs coordinates of every state: give x and y, or use edit")
    asked = {"sigma": settings.sigma, "scale": settings.scale, "standardise": settings.standardise_counts}
    own = {name: value for name, value in asked.items() if name in entry.parameters and value is not None}
    return entry.make(**own, **({"coordinates": xy} if entry.coordinates else {}))


def with_features(mdp: MDP, names: str | None) -> MDP:
    """Return the MDP with the features that `features` names, or with all of them."""
    return mdp if names is None else restricted(mdp, named_features("`features`", names, mdp.feature_ids))


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
