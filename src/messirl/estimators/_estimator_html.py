"""HTML representation of estimators in notebooks: state of the fit, changed parameters, and results."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Any

import numpy as np

from messirl._repr_html import card, grid


def estimator_html(model: Any) -> str:
    """Return HTML with changed parameters, all parameters on a click, and θ and the outcome of a fitted model."""
    given = model.get_params(deep=False)
    usual = {name: one.default for name, one in signature(type(model)).parameters.items()}
    facts = {name: _told(value) for name, value in given.items() if not _same(value, usual.get(name))}
    note = "not fitted"
    if fitted := hasattr(model, "converged_"):
        note = "fitted" if model.converged_ else "fitted, did not converge"
        facts |= {
            words: getattr(model, name)
            for name, words in (("n_iter_", "iterations"), ("objective_", "objective"), ("termination_", "ended"))
            if hasattr(model, name)
        }
    if fitted and hasattr(model, "candidate_"):
        facts |= {"chosen": model.candidate_, "because": model.reason_}
    every = grid("all parameters", ("", ""), [(name, _told(value)) for name, value in given.items()], many=len(given))
    return card(type(model).__name__, note, facts, _weights(model) if fitted else "", every)


def _weights(model: Any) -> str:
    """Return a table of θ by feature name, largest weights first."""
    theta = getattr(model, "theta_", None)
    mdp = getattr(model, "mdp_", None)
    if theta is None or mdp is None or np.shape(theta) != (mdp.n_features,):
        return ""
    order = np.argsort(-np.abs(theta), kind="stable")
    rows = [(mdp.feature_ids[j], float(theta[j])) for j in order]
    return grid("weights θ", ("feature", "weight"), rows)


def _told(value: Any) -> str:
    return f"array {value.shape}" if isinstance(value, np.ndarray) else repr(value)


def _same(value: Any, usual: Any) -> bool:
    if usual is Parameter.empty or isinstance(value, np.ndarray) or isinstance(usual, np.ndarray):
        return False
    try:
        return bool(value is usual or value == usual)
    except (TypeError, ValueError):
        return False
