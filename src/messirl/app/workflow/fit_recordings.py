"""Fit to recordings with vectors as states, by fitted value iteration: from recordings and settings to a record."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from messirl import __version__
from messirl._parameters import default
from messirl._types import Floats
from messirl.app.workflow import narrative
from messirl.app.workflow.model_settings import OF_BASELINES, ModelSettings, make_similarity
from messirl.app.workflow.record import Record, Score, settings_of
from messirl.app.workflow.split import PROBLEM, Split, rows_of
from messirl.app.workflow.watcher import SILENT, Watcher
from messirl.dynamics import FittedMESSI
from messirl.dynamics.state_features import RadialGrid, Squares
from messirl.dynamics.transition_dataset import as_points
from messirl.estimators.registry import BOTH, EXPERT
from messirl.inference.paired_gain import Gain, paired_gain
from messirl.similarity.registry import SIMILARITIES

ALONE = "fitted MaxEnt-IRL"
SAME = "MaxEnt, dynamics of all"  # reward from the experts, dynamics from all recordings
SUPPORTED = (*OF_BASELINES, "theta_max", "objective", "max_iter", "tol")  # parameters of models
DRAWN = 200  # tracks of experts that a page may draw


@dataclass(frozen=True)
class RecordingSettings(ModelSettings):
    """The settings of a fit to recordings.

    Parameters
    ----------
    discount : float
        γ, below 1; required.
    grid : int, optional
        The number of centres of features per coordinate. None: a constant, each coordinate and its square.
    baselines : bool
        Whether to fit the experts only, and their reward without a penalty, too, if recordings are held out.

    Examples
    --------
    Walks on a line from 0 to 1; the experts go right.

    >>> import numpy as np
    >>> from messirl.io import Recording
    >>> from messirl.app.workflow.fit_recordings import RecordingSettings, fit_recordings
    >>> from messirl.app.workflow.split import Split
    >>> steps = np.linspace(0.0, 1.0, 6)[:, None]
    >>> right = Recording(steps, np.ones(5, dtype=int), terminated=True)
    >>> left = Recording(steps[::-1], np.zeros(5, dtype=int), terminated=True)
    >>> facts = {"trajectory_id": np.arange(3), "role": np.array(["expert", "expert", "other"])}
    >>> split = Split(expert="role = expert", unlabelled="role = other")
    >>> record = fit_recordings([right, right, left], facts, split, RecordingSettings(discount=0.9))
    >>> [score.name for score in record.scores]
    ['FittedMESSI', 'uniform policy']
    """

    discount: float | None = None
    grid: int | None = None
    baselines: bool = True


@dataclass(frozen=True, eq=False)
class RecordingsRecord(Record):
    """The record of a fit to recordings; `summary()` is the content of fit.json.

    Attributes
    ----------
    model : FittedMESSI
        The fitted model.
    theta : dict from str to float
        The weights by the names of their features.
    scores : list of Score
        The method first, then the uniform policy, then the baselines.
    dynamics : dict
        The fitted dynamics, and the number of transitions.
    policy : dict from str to array
        Columns of a table with a row for every recorded state but the last of an episode: o_* (the state, by its names
        in the source), reward, value, and p_* (the probability of each action).
    coordinates : list of str
        The names of coordinates on pages: the source's columns without `o_`.
    features, aims : list of str
        The names of features on pages, and the meaning of a large value, in words.
    spreads : array (d,)
        The spread of each feature over the states of the experts; if their episodes end, its root mean square.
    gain : Gain or None
        The gain over chance on the held-out recordings, paired by recording.
    each : array (n,)
        The gain per step on every single held-out recording that makes a step.
    without : dict from str to Gain
        The gain over the fit to the experts only, if unlabelled recordings are used.
    beyond : Gain or None
        The gain over a reward from the experts only with the same dynamics, estimated from all recordings.
    tracks : list of array (T + 1, k)
        The states of the experts' recordings, the first few.
    explained : dict from str to float
        The share of the reward's variance, over the states of `policy`, that a parabola of each coordinate explains.
    """

    model: FittedMESSI
    theta: dict[str, float]
    scores: list[Score]
    dynamics: dict[str, Any]
    policy: dict[str, Floats] = field(default_factory=dict)
    coordinates: list[str] = field(default_factory=list)
    features: list[str] = field(default_factory=list)
    aims: list[str] = field(default_factory=list)
    spreads: Floats = field(default_factory=lambda: np.zeros(0))
    gain: Gain | None = None
    each: Floats = field(default_factory=lambda: np.zeros(0))
    without: dict[str, Gain] = field(default_factory=dict)
    beyond: Gain | None = None
    tracks: list[Floats] = field(default_factory=list)
    explained: dict[str, float] = field(default_factory=dict)

    @property
    def in_words(self) -> list[str]:
        """The verdict, in sentences."""
        return narrative.recording_sentences(self)

    def summary(self) -> dict[str, Any]:
        """Return the content of fit.json."""
        model = self.model
        return {
            "source": self.folder,
            "method": type(model).__name__,
            "dynamics": self.dynamics,
            "trajectories": self.counts,
            "theta": self.theta,
            "converged": bool(model.converged_),
            "termination": model.termination_,
            "iterations": model.n_iter_,
            "scores": [asdict(score) for score in self.scores],
            "gain_over_chance": None if self.gain is None else asdict(self.gain),
            "gain_over_experts_alone": {name: asdict(gain) for name, gain in self.without.items()},
            "gain_beyond_dynamics": None if self.beyond is None else asdict(self.beyond),
            "in_words": self.in_words,
            "warnings": self.warnings,
            "version": __version__,
            "command": self.command,
        }


def fit_recordings(
    recordings: Sequence[Any],
    facts: Mapping[str, Any],
    split: Split,
    settings: RecordingSettings,
    watcher: Watcher = SILENT,
    *,
    folder: str = PROBLEM,
) -> RecordingsRecord:
    """Divide the recordings, and fit FittedMESSI to them.

    facts : columns for filters, one row per recording
    folder : name of the recordings in the record
    """
    method = _method(settings, split.unlabelled is not None)
    if SIMILARITIES[settings.similarity].reads:
        raise ValueError(
            f"`similarity` {settings.similarity} compares discrete states, but recordings have positions: use rbf, "
            "exponential or complete"
        )
    parts: dict[str, Any] = {
        name: None if rows is None else [recordings[i] for i in rows]
        for name, rows in rows_of(facts, split, watcher).items()
    }
    expert, unlabelled, test = parts.values()
    learnt = expert + (unlabelled or [])
    points = np.concatenate([one.observations for one in learnt])
    features = Squares.fit(points) if settings.grid is None else RadialGrid.fit(points, settings.grid)
    model = _estimator(settings, features, settings.lambda0 if method == "messi" else 0.0)
    watcher.begin()
    notes = watcher.fit(model, expert, unlabelled)
    chance = -float(np.log(model.n_actions_))
    name = "FittedMESSI" if method == "messi" else ALONE if unlabelled is None else SAME
    scores = [
        _score(model, name, BOTH if unlabelled else EXPERT, expert, test),
        Score("uniform policy", "", chance, None if test is None else chance),
    ]
    gain, each, beyond, without = None, np.zeros(0), None, dict[str, Gain]()
    if test is not None:
        logs, steps = model._log_likelihood(test)
        every = {name: logs, scores[1].name: np.asarray(chance * steps)}
        gain = paired_gain(logs, every[scores[1].name], steps)
        each = logs[steps > 0] / steps[steps > 0] - chance
        for called, other in _fit_baselines(settings, model, expert, unlabelled, watcher):
            scores.append(_score(other, called, EXPERT if called == ALONE else BOTH, expert, test))
            every[called] = other._log_likelihood(test)[0]
        gains = {one: paired_gain(logs, own, steps) for one, own in every.items() if one != name}
        without, beyond = {one: found for one, found in gains.items() if one == ALONE}, gains.get(SAME)
        if without:
            scores = [
                replace(one, gain=paired_gain(every[one.name], every[ALONE], steps)) if one.name != ALONE else one
                for one in scores
            ]
    left = np.unique(np.concatenate([one.observations[:-1] for one in learnt]), axis=0)
    met = features(as_points(np.concatenate([one.observations for one in expert]), "expert"))
    reward = model.reward(left)
    ends = any(one.terminated for one in learnt)  # every step then counts, so constant features do too
    columns, coordinates = coordinate_names(learnt[0].columns, left.shape[1])
    return RecordingsRecord(
        model,
        dict(zip(_called(features.names, columns), model.theta_.tolist(), strict=True)),
        scores,
        {
            "kind": "fitted",
            "transitions": sum(len(one) for one in learnt),
            "states": model.mdp_.n_states,
            "actions": model.n_actions_,
            "discount": settings.discount,
            "lambda0": model.lambda0,
            "features": "1, o, o²" if settings.grid is None else f"radial grid, {settings.grid} a coordinate",
        },
        dict(zip(columns, left.T, strict=True))
        | {"reward": reward, "value": model.values(left)}
        | {f"p_{a}": column for a, column in enumerate(model.policy(left).T)},
        coordinates,
        _called(features.names, coordinates),
        _called(features.aims, coordinates),
        np.sqrt((met**2).mean(axis=0)) if ends else met.std(axis=0),
        gain,
        each,
        without,
        beyond,
        [np.asarray(one.observations, dtype=np.float64).reshape(len(one) + 1, -1) for one in expert[:DRAWN]],
        {name: explained_by(column, reward) for name, column in zip(columns, left.T, strict=True)},
        title=folder,
        folder=folder,
        counts={name: len(some) for name, some in parts.items() if some is not None},
        filters=split.filters,
        settings=settings_of(model),
        warnings=notes,
    )


def coordinate_names(given: Sequence[str] | None, k: int) -> tuple[list[str], list[str]]:
    """Return the columns of a state's k numbers, and their names on pages: without `o_`, if that leaves a word."""
    columns = list(given) if given is not None and len(given) == k else [f"o_{j}" for j in range(k)]
    plain = [name.removeprefix("o_") for name in columns]
    return columns, [name if word.isdecimal() or not word else word for name, word in zip(columns, plain, strict=True)]


def _called(texts: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return texts with o_0, o_1, … replaced by the names of the coordinates."""
    return [re.sub(r"\bo_(\d+)\b", lambda found: names[int(found[1])], text) for text in texts]


def explained_by(x: Floats, reward: Floats) -> float:
    """Return the share of the reward's variance that a parabola of a coordinate explains."""
    if np.ptp(x) <= 0 or np.ptp(reward) <= 0:
        return 0.0
    z = (x - x.mean()) / x.std()
    table = np.column_stack([np.ones(z.size), z, z**2])
    rest = reward - table @ np.linalg.lstsq(table, reward, rcond=None)[0]
    return max(1.0 - float(rest.var() / reward.var()), 0.0)


def _estimator(settings: RecordingSettings, features: Any, lambda0: float) -> FittedMESSI:
    assert settings.discount is not None, "it was checked"
    return FittedMESSI(
        features,
        similarity=make_similarity(settings),
        lambda0=lambda0,
        theta_max=settings.theta_max or default("theta_max"),
        discount=settings.discount,
        objective=settings.objective,
        max_iter=settings.max_iter,
        tol=settings.tol,
        random_state=settings.seed,
    )


def _fit_baselines(
    settings: RecordingSettings, model: FittedMESSI, expert: Any, unlabelled: Any, watcher: Watcher
) -> Iterator[tuple[str, FittedMESSI]]:
    """Yield the baselines that differ from the model: no penalty with the same dynamics, and the experts only."""
    if unlabelled is None or not settings.baselines:
        return
    for name, others in ((SAME, unlabelled), (ALONE, None)):
        if others is not None and model.lambda0 == 0:
            continue  # the method itself
        watcher.say(f"fitting the baseline {name}")
        other = _estimator(settings, model.features, 0.0)
        other.n_actions = model.n_actions_
        with warnings.catch_warnings():  # the fit has given all warnings about the data
            warnings.simplefilter("ignore")
            try:
                other.fit(expert, others)
            except ValueError as error:  # the dynamics of an action that no expert takes are unknown
                watcher.note(f"{name} was not fitted: {error}")
                continue
        yield name, other


def _score(model: FittedMESSI, name: str, fitted_to: str, expert: Any, test: Any) -> Score:
    note = "" if model.converged_ else f"did not converge: {model.termination_}"
    return Score(name, fitted_to, model.score(expert), None if test is None else model.score(test), note)


def _method(settings: RecordingSettings, unlabelled: bool) -> str:
    """Return the method, "messi" or "maxent"; refuse settings that fitted dynamics do not support."""
    if settings.discount is None:
        raise ValueError("recordings have no discount: give `discount`, a number below 1")
    method = (settings.method or ("messi" if unlabelled else "maxent")).lower()
    if method == "messi" and not unlabelled:
        raise ValueError("`method` messi needs unlabelled trajectories: name them with `unlabelled`")
    for wrong, what in (
        (method not in ("messi", "maxent"), f"`method` {method}"),
        (settings.entropy != "causal", f"`entropy` {settings.entropy}"),
        (settings.solver == "paper", "`solver` paper"),
    ):
        if wrong:
            raise ValueError(f"{what} cannot be combined with `dynamics` fitted: omit it")
    for name in (*settings.changed, *(["features"] if settings.features is not None else [])):
        if name not in SUPPORTED:
            raise ValueError(f"`{name}` cannot be combined with `dynamics` fitted: omit it")
    return method
