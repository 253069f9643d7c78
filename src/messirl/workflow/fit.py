"""A fit beside its baselines: from a problem and settings to a record."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from messirl._defaults import THETA_MAX
from messirl.estimators import MESSI
from messirl.estimators.base import IRLEstimator
from messirl.evaluation import estimation_table, next_state_accuracy
from messirl.evaluation.comparison import Comparison, below_chance, compare, uniform_score
from messirl.problem.mdp import MDP
from messirl.problem.problem import Problem
from messirl.workflow.estimate import Estimate, divide_and_estimate
from messirl.workflow.model import ModelSettings, make_model, make_similarity, with_features
from messirl.workflow.record import FitRecord, Score, settings_of
from messirl.workflow.split import PROBLEM, Parts, Split, divide
from messirl.workflow.watch import SILENT, Watcher

METHODS = {"MESSI": "MESSI", "MaxEntIRL": "MaxEnt-IRL", "EMMaxEnt": "EM-MaxEnt"}
LABELS = {
    "MaxEnt": "MaxEnt-IRL",
    "Ridge": "L2",
    "RidgeStd": "L2, standardised",
    "Complete": "complete graph",
    "Pooling": "pooling",
    "uniform": "uniform policy",
}
FITTED_TO = {"Complete": "expert + unlabelled", "Pooling": "all as experts", "uniform": "-"}


@dataclass(frozen=True)
class FitSettings(ModelSettings):
    """How to learn, and whether the simpler methods are fitted beside it."""

    baselines: bool = True


def fit(
    problem: Problem,
    split: Split,
    settings: FitSettings,
    watcher: Watcher = SILENT,
    *,
    folder: str = PROBLEM,
    estimate: Estimate | None = None,
) -> FitRecord:
    """Divide the problem, fit the method, and say how well it does beside others.

    folder : what errors and the record call the problem
    estimate : where the dynamics are not known, what estimates them from trajectories, as `Estimable.estimate` does
    """
    if estimate is None:
        parts = divide(problem, split, watcher, folder)
    else:
        parts = divide_and_estimate(problem, split, estimate, watcher, folder)
    mdp = with_features(parts.problem.mdp, settings.features)
    model = make_model(settings, unlabelled=parts.unlabelled is not None)
    watcher.begin()
    notes = watcher.fit(model, mdp, *parts.learnt)
    watcher.keep(model)
    with warnings.catch_warnings():  # what is to be said of the data was said above
        warnings.simplefilter("ignore")
        scores = [_score(model, parts)]
        if settings.baselines:
            scores += _baselines(settings, mdp, parts, model, watcher)
        table = estimation_table(model, parts.expert) if _has_errors(model, parts) else None
        odd = below_chance(model, parts.expert)
    notes += watcher.noted([] if odd is None else [odd])
    statistics = {} if table is None else table.statistics()
    statistics["objective"] = model.objective_
    if parts.test is not None:
        statistics["next-state accuracy, held out"] = next_state_accuracy(model, parts.test)
    return FitRecord(
        title=folder,
        model=model,
        xy=problem.xy,
        scores=scores,
        estimates=None if table is None else table.rows(),
        table=table,
        statistics=statistics,
        dynamics=parts.dynamics,
        folder=folder,
        counts=parts.counts,
        settings=settings_of(model),
        warnings=notes,
    )


def _score(model: IRLEstimator, parts: Parts) -> Score:
    method = type(model).__name__
    return Score(
        METHODS[method],
        "expert" if method == "MaxEntIRL" else "expert + unlabelled",
        model.score(parts.expert),
        None if parts.test is None else model.score(parts.test),
        "" if model.converged_ else f"did not converge: {model.termination_}",
    )


def _baselines(settings: FitSettings, mdp: MDP, parts: Parts, model: Any, watcher: Watcher) -> list[Score]:
    """The baselines at the strength of the settings, whatever the method."""
    shared = {k: v for k, v in model.get_params(deep=False).items() if k in MESSI().get_params(deep=False)}
    shared |= {"similarity": make_similarity(settings), "lambda0": settings.lambda0}
    shared["theta_max"] = settings.theta_max or THETA_MAX
    plain = type(model).__name__ == "MaxEntIRL" and not model.ridge
    if plain and parts.unlabelled is None:  # nothing to compare with but chance
        test = None if parts.test is None else uniform_score(mdp, parts.test)
        rows = [Comparison("uniform", uniform_score(mdp, parts.expert), test, converged=True)]
    else:
        watcher.say("fitting the baselines")
        rows = compare(MESSI(**shared), mdp, parts.expert, parts.unlabelled, parts.test)
    return [
        Score(
            LABELS[row.name],
            FITTED_TO.get(row.name, "expert"),
            row.expert,
            row.held_out,
            "" if row.converged else "did not converge",
        )
        for row in rows
        if not (plain and row.name == "MaxEnt")
    ]


def _has_errors(model: IRLEstimator, parts: Parts) -> bool:
    """Whether standard errors mean what they say: those of an unpenalised fit to several trajectories do."""
    return len(parts.expert) > 1 and model.quadratic_ is None and type(model).__name__ == "MaxEntIRL"
