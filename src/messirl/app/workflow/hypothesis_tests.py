"""Inference requested with a fit: standard errors, ratios of weights, and likelihood-ratio tests of features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from messirl._text import did_you_mean
from messirl.app.workflow.group_by import few_expert_warnings
from messirl.app.workflow.model_settings import make_model, named_features, restricted
from messirl.app.workflow.preferences import preferences_of, refit_without_penalty, table_of
from messirl.app.workflow.split import DividedProblem
from messirl.app.workflow.watcher import Watcher
from messirl.data.mdp import MDP
from messirl.estimators.registry import method_of
from messirl.inference import likelihood_ratio_test, weight_ratio

if TYPE_CHECKING:
    from messirl.app.workflow.fitting import FitSettings
    from messirl.inference.weight_ratios import WeightRatio


def check_inference(settings: FitSettings, model: Any, mdp: MDP, parts: DividedProblem) -> None:
    """Refuse, before the fit, requests that need standard errors which it will not have."""
    cluster = parts.groups(settings.groups)
    if cluster is not None and len(set(cluster)) < 2 <= len(parts.expert) and has_errors(model):
        raise ValueError(
            f"`groups` {settings.groups} has the same value for every expert trajectory: robust errors need at least "
            "two; omit it, or name another column"
        )
    given = {"`ratio`": settings.ratio, "`without`": settings.without, "`table`": settings.errors}
    asked = next((option for option, value in given.items() if value), None)
    if asked is None:
        return
    if not has_errors(model):
        raise ValueError(
            f"{asked} needs standard errors, which are valid for a fit to the experts only without a penalty: use "
            "`method` maxent, without `ridge`, `theta_prior` and `unlabelled_weight`"
        )
    if len(parts.expert) < 2:
        raise ValueError(f"{asked} needs standard errors, which need at least two expert trajectories: add more")
    for text in settings.ratio:
        parse_ratio(text, mdp.feature_ids)
    for text in settings.without:
        remaining_features(text, mdp.feature_ids)


def has_errors(model: Any) -> bool:
    """Return whether standard errors are valid: for a fit without penalty to the experts only."""
    penalties = ("ridge", "theta_prior", "unlabelled_weight")
    return method_of(model).inference and not any(getattr(model, name, None) for name in penalties)


def has_robust_errors(model: Any) -> bool:
    """Return whether the sandwich is valid: at the optimum of a penalised likelihood of the experts."""
    pooled = getattr(model, "unlabelled_weight", 0.0) > 0.0
    return (
        method_of(model).kind in ("MESSI", "MaxEntIRL") and not pooled and model.converged_ and model.solver == "lbfgs"
    )


def run_inference(
    settings: FitSettings, model: Any, mdp: MDP, parts: DividedProblem, watcher: Watcher
) -> tuple[dict[str, Any], list[str]]:
    """Return the inference part of a record (preferences, table, estimates, ratios, tests), and warnings.

    Estimates of a fit with a penalty have only robust errors (see inference/standard_errors.py), and
    preferences are then those of a fit without it.
    """
    cluster = parts.groups(settings.groups)
    table = table_of(model, parts.expert, cluster) if has_errors(model) or has_robust_errors(model) else None
    notes = watcher.noted(few_expert_warnings(settings.groups, parts))
    if not has_errors(model):
        found: dict[str, Any] = {"table": None, "preferences": refit_without_penalty(model, mdp, parts.expert, cluster)}
        names = ("name", "estimate", "robust_std_error")
        rows = None if table is None else [{name: row[name] for name in names} for row in table.rows()]
        return found | {"estimates": rows}, notes
    if model.standing_.box:  # the intervals of the other weights take those at their bound as known
        preferences = refit_without_penalty(model, mdp, parts.expert, cluster)
    else:
        preferences = preferences_of(model, parts.expert, table, refitted=False)
    if table is None:
        return {"table": None, "preferences": preferences}, notes
    ratios = [weight_ratio(table, *parse_ratio(text, table.names)) for text in settings.ratio]
    notes += watcher.noted([_endless(ratio) for ratio in ratios if math.isinf(ratio.fieller_low)])
    tests = []
    for text in settings.without:
        watcher.say(f"fitting without {text}")
        rest = remaining_features(text, mdp.feature_ids)
        smaller = make_model(settings, unlabelled=parts.unlabelled is not None, xy=parts.problem.xy)
        notes += watcher.fit(smaller, restricted(mdp, rest), *parts.training_sets)
        left_out = [name for name in mdp.feature_ids if name not in rest]
        tests.append({"without": left_out, **asdict(likelihood_ratio_test(smaller, model, parts.expert))})
    if tests and settings.groups is not None:
        independent = "a likelihood-ratio test treats trajectories as independent"
        notes += watcher.noted([f"{independent}, not grouped by {settings.groups}"])
    known = {"table": table, "estimates": table.rows(), "ratios": ratios, "tests": tests}
    return {**known, "preferences": preferences}, notes


def _endless(ratio: WeightRatio) -> str:
    return (
        f"the weight of {ratio.denominator} may be zero, so {ratio.name} is not bounded: its interval by the delta "
        "method is too short"
    )


def remaining_features(text: str, known: Sequence[str]) -> list[str]:
    """Return the features without those that a text names."""
    left_out = named_features("`without`", text, known)
    rest = [name for name in known if name not in left_out]
    if not rest:
        raise ValueError(f"`without` {text} leaves no feature to fit: name fewer")
    return rest


def parse_ratio(text: str, known: Sequence[str]) -> tuple[str, str]:
    """Return the two features that `a/b` names; names may contain slashes."""
    cuts = [(text[:i].strip(), text[i + 1 :].strip()) for i, sign in enumerate(text) if sign == "/"]
    found = [pair for pair in cuts if set(pair) <= set(known)]
    if len(found) == 1:
        if found[0][0] == found[0][1]:
            raise ValueError(f"`ratio` {text} names one feature twice: name two")
        return found[0]
    if found:
        raise ValueError(f"`ratio` {text} can be read in {len(found)} ways: rename a feature")
    if not cuts:
        raise ValueError(f"`ratio` {text} is not a ratio: give two features separated by a slash, as time/toll")
    wrong = next(name for name in cuts[0] if name not in known)
    close = did_you_mean(wrong, known)
    raise ValueError(f"`ratio` {text}: there is no feature {wrong!r}; there are {', '.join(known)}{close}")
