"""Selection of how to use unlabelled trajectories, by cross-validation: from a problem and settings to a record."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

from messirl._docstrings import inherit_documentation
from messirl._parameters import CV, SETTINGS, SHARED, parameter
from messirl.app.workflow.group_by import (
    Grouping,
    agreement_by_group,
    few_expert_warnings,
    make_grouping,
    scores_by_group,
)
from messirl.app.workflow.model_settings import check_reference, record_of, with_features
from messirl.app.workflow.preferences import refit_without_penalty
from messirl.app.workflow.record import SelectionRecord, settings_of, weights
from messirl.app.workflow.split import PROBLEM, DividedProblem, Split, divide, with_streamed
from messirl.app.workflow.watcher import SILENT, Watcher, warning_texts
from messirl.data.mdp import MDP
from messirl.data.problem import Problem
from messirl.data.streamed_trajectories import StreamedTrajectories
from messirl.data.trajectories import Trajectories
from messirl.estimators import MESSI
from messirl.inference.group_breakdown import Breakdown
from messirl.selection import MESSICV, bootstrap, nested_score
from messirl.selection.candidates import LAMBDAS
from messirl.selection.resampling import stability

ENOUGH = 40  # resamples; a 95 % interval from fewer is their whole range


SharedParameters: Any = record_of(parameter(name, ["MESSICV"]) or SETTINGS[name] for name in SHARED)


@dataclass(frozen=True)
class SelectSettings(SharedParameters):
    """The options of `messirl select`.

    Parameters
    ----------
    cv : int
        As for `MESSICV`.
    groups : str, optional
        Hold out whole groups of experts, named by this column of the problem's `meta`.
    by : str, optional
        Break down the score of test trajectories and the agreement of unlabelled ones by this column of `meta`.
    lambdas : tuple of float, optional
        The values of λ0 to choose from. None: those of `MESSICV`.
    nested : bool
        Whether to score the whole procedure by nested cross-validation.
    bootstrap : int, optional
        The number of resamples for 95 % intervals of θ. None: no intervals.
    features : str, optional
        The names of the features to use, separated by commas. None: all.
    seed : int
        The seed of all random numbers.

    Examples
    --------
    Six places in a row; the experts prefer the right end, the many others the left one.

    >>> import numpy as np
    >>> from messirl import MDP, sample, soft_policy
    >>> right = np.minimum(np.arange(6) + 1, 5)
    >>> left = np.maximum(np.arange(6) - 1, 0)
    >>> moves = np.stack([np.eye(6)[left], np.eye(6)[right]], axis=1)
    >>> mdp = MDP(moves, features=np.linspace(0, 1, 6)[:, None], discount=0.9, horizon=8)
    >>> expert = sample(mdp, soft_policy(mdp, mdp.reward([4.0])), 20, start=np.ones(6), random_state=0)
    >>> others = sample(mdp, soft_policy(mdp, mdp.reward([-4.0])), 500, start=np.ones(6), random_state=1)
    >>> from messirl.io import Problem
    >>> from messirl.app.workflow.selecting import SelectSettings, select
    >>> from messirl.app.workflow.split import Split
    >>> problem = Problem(mdp, expert[:10] + others, {"role": np.repeat(["expert", "other"], [10, 500])})
    >>> split = Split(expert="role = expert", unlabelled="role = other")
    >>> print(select(problem, split, SelectSettings(lambdas=(0.1, 1.0))).choice.candidate)
    L2, standardised λ0=0.01
    """

    cv: int = CV
    groups: str | None = None
    by: str | None = None
    lambdas: tuple[float, ...] | None = None
    nested: bool = False
    bootstrap: int | None = None
    features: str | None = None
    seed: int = 0

    @property
    def shared(self) -> dict[str, Any]:
        """The arguments of every estimator made here."""
        return {name: getattr(self, name) for name in SHARED}


inherit_documentation(SelectSettings)


def select(
    problem: Problem,
    split: Split,
    settings: SelectSettings,
    watcher: Watcher = SILENT,
    *,
    folder: str = PROBLEM,
    streamed: StreamedTrajectories | None = None,
    executor: Any = None,
) -> SelectionRecord:
    """Divide the problem and choose a candidate; if nothing can be held out, also measure the stability of each λ0.

    folder : name of the problem in errors and in the record
    streamed : unlabelled trajectories that stay in files, instead of those that `split` names
    executor : runs splits and resamples (see execution.run); None: this process
    """
    if streamed is not None and settings.bootstrap is not None:
        raise ValueError("`bootstrap` resamples unlabelled trajectories, which cannot stay in files: omit it")
    parts = with_streamed(divide(problem, split, watcher, folder), split, streamed)
    mdp = with_features(parts.problem.mdp, settings.features)
    check_reference(settings, unlabelled=parts.unlabelled is not None)
    groups = parts.groups(settings.groups)
    by = make_grouping(parts, settings.by, settings.groups, watcher)
    if by is not None and parts.test is None and not isinstance(parts.unlabelled, Trajectories):
        raise ValueError("`by` has no effect without `test` and `unlabelled`: give one, or omit `by`")
    if settings.nested and len(set(range(len(parts.expert)) if groups is None else groups)) < 3:
        raise ValueError(
            "`nested` needs at least three expert trajectories (or groups), as it holds out twice: omit it, or add more"
        )
    model = MESSICV(
        lambdas=settings.lambdas or LAMBDAS,
        cv=settings.cv,
        random_state=settings.seed,
        **settings.shared,
    )
    watcher.begin()
    began = time.monotonic()
    with (
        parts.naming(),
        watcher.progress("select", "fits" if executor is None else "splits") as count,
        warnings.catch_warnings(record=True) as heard,
    ):
        warnings.simplefilter("always")
        model.set_params(progress=count).fit(mdp, parts.expert, parts.unlabelled, groups, executor=executor)
    seconds = time.monotonic() - began
    model.set_params(progress=None)
    held = list(replace(model.best_estimator_.standing_, penalty=()).warnings(mdp, model.theta_))  # weights at bounds
    notes = watcher.noted([*map(parts.named, warning_texts(heard)), *held])
    watcher.keep(model)
    nested = intervals = rows = None
    with warnings.catch_warnings():  # the fit has given all warnings about the data
        warnings.simplefilter("ignore")
        if model.validation_ is None and parts.unlabelled is not None and streamed is None:
            rows = _stability(settings, mdp, parts, watcher, executor)
        if settings.nested and model.validation_ is not None:
            watcher.say("repeating the choice for every outer split")
            nested = nested_score(model, mdp, parts.expert, parts.unlabelled, groups, executor=executor)
        if settings.bootstrap is not None:
            intervals = _intervals(settings, model, mdp, parts, watcher, executor)
            if settings.bootstrap < ENOUGH:
                said = f"intervals from {settings.bootstrap} resamples are rough and often too short: use more than"
                notes += watcher.noted([f"{said} {ENOUGH}"])
    preferences = refit_without_penalty(model.best_estimator_, mdp, parts.expert, groups)
    notes += watcher.noted(few_expert_warnings(settings.groups, parts))
    broken = [] if by is None else _by_group(by, parts, model)
    return SelectionRecord(
        model.validation_,
        model.choice_,
        model,
        model.score(parts.expert),
        None if parts.test is None else model.score(parts.test),
        nested,
        intervals,
        preferences,
        rows,
        seconds,
        title=folder,
        folder=folder,
        counts=parts.counts,
        filters=split.filters,
        settings=settings_of(model.best_estimator_),
        warnings=notes,
        by=broken,
    )


def _by_group(by: Grouping, parts: DividedProblem, model: MESSICV) -> list[Breakdown]:
    """Return held-out scores of the chosen candidate, if any, and the agreement of unlabelled trajectories."""
    out = [] if parts.test is None else scores_by_group(by, parts, model._log_likelihood(parts.test), held_out=True)
    if model.agreement_ is not None and isinstance(parts.unlabelled, Trajectories):
        out.append(agreement_by_group(by, parts, model.agreement_))
    return out


def _intervals(
    settings: SelectSettings, model: MESSICV, mdp: MDP, parts: DividedProblem, watcher: Watcher, executor: Any
) -> dict[str, list[float]]:
    """Return the 95 % intervals of θ of the chosen candidate; the choice itself is not repeated."""
    expert, unlabelled = (*model.fitted_to_, None)[:2]
    assert expert is not None
    with watcher.progress("bootstrap", "resamples") as count:
        found = bootstrap(
            model.best_estimator_,
            mdp,
            expert,
            unlabelled,
            settings.bootstrap or 0,
            settings.seed,
            count,
            executor,
            groups=parts.groups(settings.groups),
            unlabelled_groups=None if unlabelled is None else parts.groups(settings.groups, "unlabelled"),
        )
    return dict(zip(weights(model), found.interval(found.theta).T.tolist(), strict=True))


def _stability(
    settings: SelectSettings, mdp: MDP, parts: DividedProblem, watcher: Watcher, executor: Any
) -> list[dict[str, float]]:
    """Return the stability of the policy at each λ0, all with the same draws."""
    assert parts.unlabelled is not None
    model = MESSI(**settings.shared)
    lambdas, rows = settings.lambdas or LAMBDAS, []
    with watcher.progress("stability", "strengths") as count:
        for i, x in enumerate(lambdas, start=1):
            drawn = {"random_state": settings.seed, "executor": executor}
            rows += stability(model, mdp, parts.expert, parts.unlabelled, (x,), **drawn)
            count(i, len(lambdas))
    return rows
