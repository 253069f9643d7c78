"""A fit and its baselines: from a problem and settings to a record."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from messirl._defaults import THETA_MAX
from messirl.estimators import MESSI
from messirl.estimators.maximum_entropy import MaximumEntropy
from messirl.estimators.methods import BASELINES, METHODS, described, method_of
from messirl.evaluation import estimation_table, next_state_accuracy
from messirl.evaluation.comparison import below_chance, compare
from messirl.problem.mdp import MDP
from messirl.problem.problem import Problem
from messirl.workflow.estimate import Estimate, divide_and_estimate
from messirl.workflow.model import ModelSettings, make_model, make_similarity, with_features
from messirl.workflow.record import FitRecord, Score, settings_of
from messirl.workflow.split import PROBLEM, Parts, Split, divide
from messirl.workflow.watch import SILENT, Watcher


@dataclass(frozen=True)
class FitSettings(ModelSettings):
    """How to learn, and whether the baselines are fitted as well.

    Parameters
    ----------
    baselines : bool
        Whether simpler methods are fitted to the same trajectories for comparison.

    Examples
    --------
    Six places in a row; the experts prefer the right end.

    >>> import numpy as np
    >>> from messirl import MDP, sample, soft_policy
    >>> right = np.minimum(np.arange(6) + 1, 5)
    >>> left = np.maximum(np.arange(6) - 1, 0)
    >>> moves = np.stack([np.eye(6)[left], np.eye(6)[right]], axis=1)
    >>> mdp = MDP(moves, features=np.linspace(0, 1, 6)[:, None], discount=0.9, horizon=8)
    >>> expert = sample(mdp, soft_policy(mdp, mdp.reward([2.0])), 20, start=np.ones(6), random_state=0)
    >>> from messirl.io import Problem
    >>> from messirl.workflow.fit import FitSettings, fit
    >>> from messirl.workflow.split import Split
    >>> record = fit(Problem(mdp, expert), Split(), FitSettings(method="maxent"))
    >>> record.model.theta_.round(2)
    array([2.19])
    >>> [score.name for score in record.scores]
    ['MaxEnt-IRL', 'uniform policy']
    """

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
    """Divide the problem, fit the method, and find out how well it does compared with others.

    folder : what errors and the record call the problem
    estimate : if the dynamics are not known, a function that estimates them from trajectories, as `Estimable.estimate`
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
    with warnings.catch_warnings():  # what they say about the data was said above
        warnings.simplefilter("ignore")
        scores = [_score(model, parts)]
        if settings.baselines:
            scores += _baselines(settings, mdp, parts, model, watcher)
        table = estimation_table(model, parts.expert) if _is_plain(model) and len(parts.expert) > 1 else None
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


def _score(model: MaximumEntropy, parts: Parts) -> Score:
    label, fitted_to = described(model)
    held_out = None if parts.test is None else model.score(parts.test)
    note = "" if model.converged_ else f"did not converge: {model.termination_}"
    return Score(label, fitted_to, model.score(parts.expert), held_out, note)


def _baselines(settings: FitSettings, mdp: MDP, parts: Parts, model: Any, watcher: Watcher) -> list[Score]:
    """The scores of the baselines, with penalties as strong as the settings say, whatever the method."""
    shared = {k: v for k, v in model.get_params(deep=False).items() if k in MESSI().get_params(deep=False)}
    shared |= {"similarity": make_similarity(settings), "lambda0": settings.lambda0}
    shared |= {"theta_max": settings.theta_max or THETA_MAX, "reference": None, "unlabelled_weight": 0.0}
    plain = _is_plain(model)  # then it is itself one of the baselines, unless it has a base policy
    if not (plain and parts.unlabelled is None):  # else only chance is left to compare with
        watcher.say("fitting the baselines")
    own = None if model.mdp_.reference is not None or not plain else method_of(model)
    others = [method for method in BASELINES if method != own]
    scores = []
    for row in compare(MESSI(**shared), mdp, parts.expert, parts.unlabelled, parts.test, others):
        method, note = METHODS[row.name], "" if row.converged else "did not converge"
        scores.append(Score(method.label, method.fitted_to, row.expert, row.held_out, note))
    return scores


def _is_plain(model: MaximumEntropy) -> bool:
    """Whether it is a fit without penalty to experts alone, for which standard errors are valid."""
    return model.quadratic_ is None and method_of(model).inference and not getattr(model, "unlabelled_weight", 0.0)
