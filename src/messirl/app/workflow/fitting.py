"""A fit with its baselines: from a problem and settings to a record."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import clone

from messirl._parameters import default
from messirl._types import Floats
from messirl.app.workflow.dynamics_split import Estimate, divide_and_estimate
from messirl.app.workflow.group_by import Grouping, agreement_by_group, make_grouping, scores_by_group
from messirl.app.workflow.hypothesis_tests import check_inference, run_inference
from messirl.app.workflow.map_data import map_of
from messirl.app.workflow.model_settings import ModelSettings, chosen_method, make_model, make_similarity, with_features
from messirl.app.workflow.policy_change import policy_change
from messirl.app.workflow.record import FitRecord, Score, settings_of
from messirl.app.workflow.split import PROBLEM, DividedProblem, Split, divide, with_streamed
from messirl.app.workflow.verdict import Verdict, compare_scores
from messirl.app.workflow.watcher import SILENT, Watcher
from messirl.data.mdp import MDP
from messirl.data.problem import Problem
from messirl.data.streamed_trajectories import StreamedTrajectories
from messirl.data.trajectories import Trajectories
from messirl.estimators import MESSI
from messirl.estimators._convergence_report import ignore_convergence_warnings
from messirl.estimators._streaming import all_in_files
from messirl.estimators.registry import (
    COMPARED,
    EXPERT,
    EXPERT_ONLY,
    METHODS,
    POOLED,
    Method,
    compared_method_of,
    describe_model,
)
from messirl.inference import next_state_accuracy
from messirl.inference.baselines import (
    Comparison,
    compare,
    explain_below_chance,
    explain_missing_scores,
    held_out_scores,
)
from messirl.inference.group_breakdown import Breakdown
from messirl.planning import NoFiniteValue
from messirl.selection.decision_rule import FEWEST
from messirl.selection.expert_agreement import measure_agreement


@dataclass(frozen=True)
class FitSettings(ModelSettings):
    """The settings of a fit: the model, baselines, inference and groups.

    Parameters
    ----------
    baselines : bool
        Whether simpler methods are fitted to the same trajectories for comparison.
    ratio : sequence of str
        Ratios of weights to estimate, each as `"time/toll"`.
    without : sequence of str
        Features to test by leaving them out; each text names those of one test, separated by commas.
    errors : bool
        Whether to refuse settings whose fit has no standard errors.
    by : str, optional
        Break down scores and the agreement of unlabelled trajectories by this column of the problem's `meta`.
    groups : str, optional
        The column of `meta` that names the individual: robust errors and intervals are by individual.

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
    >>> from messirl.app.workflow.fitting import FitSettings, fit
    >>> from messirl.app.workflow.split import Split
    >>> record = fit(Problem(mdp, expert), Split(), FitSettings(method="maxent"))
    >>> record.model.theta_.round(2)
    array([2.19])
    >>> [score.name for score in record.scores]
    ['MaxEnt-IRL', 'uniform policy']
    """

    baselines: bool = True
    ratio: Sequence[str] = ()
    without: Sequence[str] = ()
    errors: bool = False
    by: str | None = None
    groups: str | None = None


def fit(
    problem: Problem,
    split: Split,
    settings: FitSettings,
    watcher: Watcher = SILENT,
    *,
    folder: str = PROBLEM,
    estimate: Estimate | None = None,
    streamed: StreamedTrajectories | None = None,
) -> FitRecord:
    """Divide the problem, fit the method, and compare it with the baselines.

    folder : name of the problem in errors and in the record
    estimate : if the dynamics are unknown, a function that estimates them from trajectories, as `Estimable.estimate`
    streamed : unlabelled trajectories that stay in files, instead of those that `split` names
    """
    if streamed is not None and (settings.method or "").lower() == "em":
        raise ValueError(
            "`method` em weights every trajectory anew in each round and cannot read them from files: use messi or "
            "maxent, or name trajectories of the folder with `unlabelled`"
        )
    if estimate is None:
        parts = with_streamed(divide(problem, split, watcher, folder), split, streamed)
    else:
        parts = divide_and_estimate(problem, split, estimate, watcher, folder)
    mdp = with_features(parts.problem.mdp, settings.features)
    method, model, data = _task(settings, mdp, parts)
    if not isinstance(model, MESSI):
        _check_penalty(settings, parts)
    check_inference(settings, model, mdp, parts)
    by = make_grouping(parts, settings.by, settings.groups, watcher)
    grouped = method.kind in ("MESSI", "MaxEntIRL", "SeveralExperts")  # have robust errors, or a θ per group
    if settings.groups is not None and parts.test is None and by is None and not grouped:
        raise ValueError(
            f"`groups` has no effect with `method` {method.option} and no `test`, which has neither robust errors nor "
            "held-out scores: give `test`, or omit `groups`"
        )
    watcher.begin()
    with parts.naming():
        notes = watcher.fit(model, mdp, *data, named=parts.named)
    watcher.keep(model)
    if hasattr(model, "thetas_"):
        which = "the mean of all" if method.kind == "SeveralExperts" else "the first group"
        said = "groups have weights of their own, thetas_ of the model; shown are those of"
        notes += watcher.noted([f"{len(model.thetas_)} {said} {which}"])
    known: dict[str, Any] = {"table": None}
    if method.maximum_entropy:
        known, doubts = run_inference(settings, model, mdp, parts, watcher)
        notes += doubts
    with warnings.catch_warnings():  # the fit has given all warnings about the data
        warnings.simplefilter("ignore")
        scores, verdict, logs = _scores(settings, method, mdp, parts, model, watcher)
        broken = [] if by is None else _broken_down(by, settings, mdp, parts, model, logs)
        odd = explain_below_chance(model, parts.expert) if method.maximum_entropy else None
    notes += watcher.noted([*([] if odd is None else [odd]), *_repeated_trajectories(mdp, parts)])
    statistics = {} if known["table"] is None else known["table"].statistics()
    if hasattr(model, "objective_"):
        statistics["objective"] = model.objective_
    if parts.test is not None:
        with contextlib.suppress(NoFiniteValue):  # the scores show that
            statistics["next-state accuracy, held out"] = next_state_accuracy(model, parts.test)
    record = FitRecord(
        title=folder,
        model=model,
        **map_of(problem, mdp, parts),
        scores=scores,
        statistics=statistics,
        dynamics=parts.dynamics,
        verdict=verdict,
        folder=folder,
        counts=parts.counts,
        filters=split.filters,
        settings=settings_of(model),
        warnings=notes,
        by=broken,
        **known,
    )
    return replace(record, change=policy_change(model, record.policy, parts) if method.maximum_entropy else None)


def _task(settings: FitSettings, mdp: MDP, parts: DividedProblem) -> tuple[Method, Any, tuple[Any, ...]]:
    """Return the method of the settings, its estimator, not fitted, and the data to fit it to."""
    unlabelled = parts.unlabelled is not None
    method = chosen_method(settings, unlabelled=unlabelled)
    model = make_model(settings, unlabelled=unlabelled, xy=parts.problem.xy)
    if method.shape is not None:  # as strong as MESSI's penalty
        messi = METHODS["MESSI"].build(
            {**settings.arguments, "similarity": make_similarity(settings, parts.problem.xy)}
        )
        model, _ = method.make(messi, mdp, parts.expert, parts.unlabelled)
    elif method.fitted_to == POOLED:
        model.set_params(unlabelled_weight=1.0)
    elif method.kind == "SeveralExperts":
        if settings.groups is None:
            raise ValueError(
                f"`method` {method.option} fits a reward per expert: name the column that holds the expert of each "
                "trajectory with `groups`"
            )
        return method, model, (*parts.training_sets, None, parts.groups(settings.groups))
    if method.maximum_entropy or method.unlabelled:
        return method, model, parts.training_sets
    return method, model, parts.training_sets[:1]


def _check_penalty(settings: FitSettings, parts: DividedProblem) -> None:
    """Refuse settings of a penalty that neither the fit nor a baseline has."""
    if parts.unlabelled is not None and settings.baselines:
        return
    for name in ("lambda0", "similarity", "sigma", "scale", "standardise_counts"):
        if getattr(settings, name) != getattr(FitSettings, name):
            why = "without unlabelled trajectories" if parts.unlabelled is None else "without baselines"
            remedy = "name some with `unlabelled`" if parts.unlabelled is None else "use `method` messi"
            raise ValueError(f"`{name}` has no effect {why}, since only messi has a penalty: omit it, or {remedy}")


def _scores(
    settings: FitSettings, method: Method, mdp: MDP, parts: DividedProblem, model: Any, watcher: Watcher
) -> tuple[list[Score], Verdict | None, list[Floats | None]]:
    """Return the scores of the model and, with `baselines`, of the other methods, and the verdict on the best one.

    The last item holds the log-probabilities of held-out trajectories under the model and, if that is a different fit,
    under the fit to the experts only.
    """
    name, fitted_to = describe_model(model)
    held_out, own = held_out_scores(model, parts.test)
    ended = getattr(model, "termination_", "")
    note = _notes("" if model.converged_ else f"did not converge{': ' if ended else ''}{ended}", mdp, parts, own)
    scores, logs = [Score(name, fitted_to, model.score(parts.expert), held_out, note)], [own]
    alone = 0
    for row in _fit_baselines(settings, method, mdp, parts, model, watcher) if settings.baselines else ():
        other = METHODS[row.name]
        note = _notes("" if row.converged else "did not converge", mdp, parts, row.logs)
        alone = len(scores) if row.name == EXPERT_ONLY else alone
        scores.append(Score(other.label, other.fitted_to, row.expert, row.held_out, note))
        logs.append(row.logs)
    based = settings.baselines and method.maximum_entropy and fitted_to != EXPERT
    twin = _fit_on_experts(model, mdp, parts, watcher) if based else None
    if twin is not None:
        held_out, own = held_out_scores(twin, parts.test)
        note = _notes("" if twin.converged_ else "did not converge", mdp, parts, own)
        scores.append(Score(describe_model(twin)[0], EXPERT, twin.score(parts.expert), held_out, note))
        logs.append(own)
    known = [one for one in logs if one is not None]
    if parts.test is None or len(known) < 2:
        return scores, None, logs[:1]
    without = [i for i, score in enumerate(scores) if fitted_to != EXPERT and score.fit_on == EXPERT]
    names, cluster = [score.name for score in scores], parts.groups(settings.groups, "test")
    verdict, gains = compare_scores(names, known, parts.test.lengths - 1, alone, without, cluster)
    gained = [None if i == alone else gain for i, gain in enumerate(gains)]
    told = [replace(score, gain=gain) for score, gain in zip(scores, gained, strict=True)]
    return told, verdict, [logs[0], logs[alone]] if alone else logs[:1]


def _repeated_trajectories(mdp: MDP, parts: DividedProblem) -> list[str]:
    """Return a sentence for each part whose trajectories are all among the unlabelled ones in files."""
    if not isinstance(parts.unlabelled, StreamedTrajectories):
        return []
    return [
        f"all {len(some)} {name} trajectories are among those of `unlabelled_from`, state by state: if these are the "
        "same recordings, take them out of the files"
        for name, some in (("expert", parts.expert), ("test", parts.test))
        if some is not None and len(some) >= FEWEST and all_in_files(mdp, some, parts.unlabelled)
    ]


def _notes(note: str, mdp: MDP, parts: DividedProblem, logs: Floats | None) -> str:
    """Return a note on a score, with the number of trajectories for which the model has no finite value."""
    return "; ".join(text for text in (note, explain_missing_scores(mdp, parts.test, logs)) if text)


def _broken_down(
    by: Grouping, settings: FitSettings, mdp: MDP, parts: DividedProblem, model: Any, logs: list[Floats | None]
) -> list[Breakdown]:
    """Return scores and the agreement of unlabelled trajectories, by group."""
    held_out, alone = (*logs, None)[:2]
    own = model._log_likelihood(parts.expert) if held_out is None else held_out
    out = scores_by_group(by, parts, own, alone, held_out=held_out is not None)
    if isinstance(parts.unlabelled, Trajectories) and len(parts.expert) > 1:
        asked: dict[str, Any] = {"groups": parts.groups(settings.groups), "random_state": settings.seed}
        out.append(agreement_by_group(by, parts, measure_agreement(mdp, parts.expert, parts.unlabelled, **asked)))
    return out


def _fit_on_experts(model: Any, mdp: MDP, parts: DividedProblem, watcher: Watcher) -> Any:
    """Return the model with its own ridge, fitted to the experts only; None if a baseline is the same fit."""
    if parts.unlabelled is None or not getattr(model, "ridge", 0.0):
        return None
    alone = {"unlabelled_weight": 0.0} | ({"reference": None} if isinstance(model.reference, str) else {})
    twin = clone(model).set_params(**alone)
    watcher.say("fitting the same model without the unlabelled trajectories")
    with ignore_convergence_warnings():  # its score says whether it converged
        return twin.fit(mdp, parts.expert)


def _fit_baselines(
    settings: FitSettings, method: Method, mdp: MDP, parts: DividedProblem, model: Any, watcher: Watcher
) -> list[Comparison]:
    """Return the baselines, with the penalty strengths of the settings, whatever the method.

    Methods without a maximum-entropy objective are compared with MaxEnt-IRL on the experts only, and with chance.
    """
    if not method.maximum_entropy:
        watcher.say("fitting the baselines")
        others = [METHODS[name] for name in (EXPERT_ONLY, "uniform") if name != method.name]
        return compare(MESSI(), mdp, parts.expert, None, parts.test, others)
    own = model.get_params(deep=False)
    shared = {k: v for k, v in own.items() if k in MESSI().get_params(deep=False)}
    shared |= {"similarity": make_similarity(settings, parts.problem.xy), "lambda0": settings.lambda0}
    shared |= {"theta_max": settings.theta_max or default("theta_max"), "reference": None, "unlabelled_weight": 0.0}
    itself = method if method.shape is not None or method.fitted_to == POOLED else compared_method_of(model)
    if itself is None or parts.unlabelled is not None:  # otherwise chance is the only baseline
        watcher.say("fitting the baselines")
    ridge = {name: own[name] for name in ("ridge", "standardise") if name in own}
    light = [m.name for m in COMPARED if m.sets and not m.penalised]  # as the model, except for their own settings
    same = [] if itself is None else [itself.name]
    same += [method.name] if method.name != EXPERT_ONLY else []  # which may have a ridge or a prior policy here
    others = [replace(m, sets=m.sets | ridge) if m.name in light else m for m in COMPARED if m.name not in same]
    near = model if method.kind in ("MESSI", "MaxEntIRL", "EMMaxEnt") else None  # from which searches may start
    return compare(MESSI(**shared), mdp, parts.expert, parts.unlabelled, parts.test, others, near)
