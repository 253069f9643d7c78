"""Diagnosis of the unlabelled trajectories: from a problem and settings to a record."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from messirl._parameters import CV, INFLUENTIAL, WEAK_PRIOR
from messirl.app.workflow.group_by import Grouping, agreement_by_group, make_grouping
from messirl.app.workflow.model_settings import ModelSettings, chosen_method, make_model, with_features
from messirl.app.workflow.record import DiagnosisRecord, settings_of
from messirl.app.workflow.split import PROBLEM, DividedProblem, Split, divide, with_streamed
from messirl.app.workflow.watcher import SILENT, Watcher, warning_texts
from messirl.data.problem import Problem
from messirl.data.streamed_trajectories import StreamedTrajectories
from messirl.estimators import MESSI
from messirl.inference.group_breakdown import Breakdown
from messirl.selection import NothingHeldOut, diagnostics, gain_by_group
from messirl.selection.cross_validation import make_splits
from messirl.selection.diagnostics import Diagnosis


@dataclass(frozen=True)
class DiagnoseSettings(ModelSettings):
    """The settings of a diagnosis: the model, and the assessment of the unlabelled trajectories.

    Parameters
    ----------
    influential : int
        The number of unlabelled trajectories, those with the largest penalty shares, to leave out one by one.
    cv : int
        The number of folds of the experts.
    groups : str, optional
        Hold out whole groups of experts, named by this column of the problem's `meta`.
    by : str, optional
        Report the agreement of each group of unlabelled trajectories, by this column of `meta`, with the expert policy,
        and what using it alone gains.

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
    >>> from messirl.app.workflow.diagnosis import DiagnoseSettings, diagnose
    >>> from messirl.app.workflow.split import Split
    >>> problem = Problem(mdp, expert[:10] + others, {"role": np.repeat(["expert", "other"], [10, 500])})
    >>> split = Split(expert="role = expert", unlabelled="role = other")
    >>> found = diagnose(problem, split, DiagnoseSettings(influential=0)).diagnosis
    >>> found.verdict, int(found.agreement_with_experts.alike.sum())
    ('hurt', 0)

    None of them behaves like an expert, so a fit to the experts only is recommended.

    >>> print(found.choice.candidate)
    L2, standardised λ0=0.01
    """

    influential: int = INFLUENTIAL
    cv: int = CV
    groups: str | None = None
    by: str | None = None


def diagnose(
    problem: Problem,
    split: Split,
    settings: DiagnoseSettings,
    watcher: Watcher = SILENT,
    *,
    folder: str = PROBLEM,
    streamed: StreamedTrajectories | None = None,
    executor: Any = None,
) -> DiagnosisRecord:
    """Divide the problem, fit MESSI, and diagnose the effect of the unlabelled trajectories.

    folder : name of the problem in errors and in the record
    streamed : unlabelled trajectories that stay in files, instead of those that `split` names
    executor : runs splits and refits (see execution.run); None: this process
    """
    parts = with_streamed(divide(problem, split, watcher, folder), split, streamed)
    if parts.unlabelled is None:
        how = "name them with `unlabelled` or `unlabelled_from`"
        raise ValueError(f"there are no unlabelled trajectories to diagnose: {how}")
    mdp = with_features(parts.problem.mdp, settings.features)
    model = make_model(settings, unlabelled=True, xy=parts.problem.xy)
    if chosen_method(settings, unlabelled=True).name != "MESSI":
        raise ValueError(f"`method` {settings.method} has no penalty of MESSI to diagnose: omit `method`")
    groups = parts.groups(settings.groups)
    if settings.by is not None and streamed is not None:
        raise ValueError("`by` needs trajectory_meta, which trajectories in files do not have: omit it")
    by = make_grouping(parts, settings.by, settings.groups, watcher)
    try:  # fail before the fit if nothing can be held out
        make_splits(mdp, parts.expert, settings.cv, groups, settings.seed)
    except NothingHeldOut as why:
        raise ValueError(
            "one expert trajectory, which cannot be divided: nothing can be held out to judge the unlabelled ones; "
            "give at least two with `expert`"
        ) from why
    watcher.begin()
    with parts.naming():
        notes = watcher.fit(model, mdp, *parts.training_sets, named=parts.named)
    watcher.say("measuring what held-out experts gain from them")
    with watcher.progress("leaving out", "trajectories") as count, warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("ignore")  # the fit has given all warnings about the data, but for this one
        warnings.filterwarnings("always", "all .* expert trajectories are among the unlabelled ones", UserWarning)
        found = diagnostics.diagnose(
            model,
            mdp,
            parts.expert,
            parts.unlabelled,
            influential=settings.influential,
            cv=settings.cv,
            groups=groups,
            random_state=settings.seed,
            progress=count,
            executor=executor,
        )
    notes += watcher.noted(warning_texts(heard))
    broken = [] if by is None else _by_group(by, settings, model, parts, found, watcher, executor)
    return DiagnosisRecord(
        found,
        _names(problem, parts),
        list(mdp.feature_names or [f"feature {j}" for j in range(mdp.n_features)]),
        title=folder,
        lambda0=model.lambda0,
        folder=folder,
        counts=parts.counts,
        filters=split.filters,
        settings=settings_of(model),
        warnings=notes,
        by=broken,
    )


def _by_group(
    by: Grouping,
    settings: DiagnoseSettings,
    model: MESSI,
    parts: DividedProblem,
    found: Diagnosis,
    watcher: Watcher,
    executor: Any,
) -> list[Breakdown]:
    """Return the gain from each group of unlabelled trajectories, and its agreement with the expert policy."""
    like = agreement_by_group(by, parts, found.agreement_with_experts)
    if len(parts.expert) < 2:
        return [like]
    watcher.say(f"measuring what they gain from each group of {by.column} alone")
    asked: dict[str, Any] = {"column": by.column, "order": by.order, "expert_labels": by.of(parts, "expert")}
    asked |= {"cv": settings.cv, "groups": parts.groups(settings.groups), "random_state": settings.seed}
    asked |= {"theta_max": model._bound, "theta_prior": WEAK_PRIOR if model.theta_prior is None else model.theta_prior}
    asked |= {"entropy": model.entropy, "objective": model.likelihood_, "executor": executor}
    mdp = with_features(parts.problem.mdp, settings.features)
    with watcher.progress("using each group", "groups") as count, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        used = gain_by_group(
            mdp,
            parts.expert,
            parts.unlabelled,
            by.of(parts, "unlabelled"),
            yardstick=None if model.measure.fixed else model.measure,
            progress=count,
            **asked,
        )
    return [used[0], like, *used[1:]]


def _names(problem: Problem, parts: DividedProblem) -> Sequence[str]:
    """Return the names of the unlabelled trajectories."""
    if isinstance(parts.unlabelled, StreamedTrajectories):
        return parts.unlabelled.names()
    return [str(name) for name in problem.facts["trajectory_id"][parts.rows["unlabelled"]]]
