"""A fit to recordings with vectors as states, by fitted value iteration: from recordings and settings to a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from messirl import __version__
from messirl._defaults import THETA_MAX
from messirl._types import Floats
from messirl.dynamics import FittedMESSI
from messirl.dynamics.features import RadialGrid, Squares
from messirl.workflow.model import ModelSettings, make_similarity
from messirl.workflow.record import Record, Score
from messirl.workflow.split import PROBLEM, Split, rows_of
from messirl.workflow.watch import SILENT, Watcher


@dataclass(frozen=True)
class RecordingSettings(ModelSettings):
    """How to learn from recordings.

    Parameters
    ----------
    discount : float
        γ, below 1; it must be given.
    grid : int, optional
        Features from so many centres per coordinate. None: a constant, each coordinate and its square.

    Examples
    --------
    Walks on a line from 0 to 1; the experts go right.

    >>> import numpy as np
    >>> from messirl.io import Recording
    >>> from messirl.workflow.recordings import RecordingSettings, fit_recordings
    >>> from messirl.workflow.split import Split
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


@dataclass(frozen=True, eq=False)
class RecordingsRecord(Record):
    """What a fit to recordings found; `summary()` is what fit.json holds.

    Attributes
    ----------
    model : FittedMESSI
        The fitted model.
    theta : dict from str to float
        The weights by the names of their features.
    scores : list of Score
        The method first, then the uniform policy.
    dynamics : dict
        What was fitted to the transitions, and how many there were.
    policy : dict from str to array
        Columns of a table with a row for every recorded state but the last of an episode: o_* (the state), reward,
        value, and p_* (the probability of each action).
    """

    model: FittedMESSI
    theta: dict[str, float]
    scores: list[Score]
    dynamics: dict[str, Any]
    policy: dict[str, Floats] = field(default_factory=dict)

    def summary(self) -> dict[str, Any]:
        """What fit.json holds."""
        model = self.model
        scores = [asdict(score) for score in self.scores]
        return {
            "source": self.folder,
            "method": type(model).__name__,
            "dynamics": self.dynamics,
            "trajectories": self.counts,
            "theta": self.theta,
            "converged": bool(model.converged_),
            "termination": model.termination_,
            "iterations": model.n_iter_,
            "scores": [{name: row[name] for name in ("name", "expert", "held_out", "note")} for row in scores],
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

    facts : what filters see, one row per recording
    folder : what the record calls the recordings
    """
    method = _method(settings, split.unlabelled is not None)
    if settings.similarity in ("edit", "dtw", "visited"):
        raise ValueError(
            f"--similarity {settings.similarity} compares states, and recordings have positions: choose rbf, "
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
    assert settings.discount is not None, "it was checked"
    model = FittedMESSI(
        features,
        similarity=make_similarity(settings),
        lambda0=settings.lambda0 if method == "messi" else 0.0,
        theta_max=settings.theta_max or THETA_MAX,
        discount=settings.discount,
        objective=settings.objective,
        max_iter=settings.max_iter,
        tol=settings.tol,
        random_state=settings.seed,
    )
    watcher.begin()
    notes = watcher.fit(model, expert, unlabelled)
    chance = -float(np.log(model.n_actions_))
    name = "FittedMESSI" if method == "messi" else "fitted MaxEnt-IRL"
    note = "" if model.converged_ else f"did not converge: {model.termination_}"
    left = np.unique(np.concatenate([one.observations[:-1] for one in learnt]), axis=0)
    return RecordingsRecord(
        model,
        dict(zip(features.names, model.theta_.tolist(), strict=True)),
        [
            Score(name, "", model.score(expert), None if test is None else model.score(test), note),
            Score("uniform policy", "", chance, None if test is None else chance),
        ],
        {
            "kind": "fitted",
            "transitions": sum(len(one) for one in learnt),
            "states": model.mdp_.n_states,
            "actions": model.n_actions_,
            "discount": settings.discount,
            "lambda0": model.lambda0,
            "features": "1, o, o²" if settings.grid is None else f"radial grid, {settings.grid} a coordinate",
        },
        {f"o_{j}": column for j, column in enumerate(left.T)}
        | {"reward": model.reward(left), "value": model.values(left)}
        | {f"p_{a}": column for a, column in enumerate(model.policy(left).T)},
        folder=folder,
        counts={name: len(some) for name, some in parts.items() if some is not None},
        warnings=notes,
    )


def _method(settings: RecordingSettings, unlabelled: bool) -> str:
    """The method, "messi" or "maxent"; settings that fitted dynamics do not support are refused."""
    if settings.discount is None:
        raise ValueError("recordings have no discount: give --discount, a number below 1")
    method = settings.method or ("messi" if unlabelled else "maxent")
    if method == "messi" and not unlabelled:
        raise ValueError("--method messi needs unlabelled trajectories: say which with --unlabelled")
    for wrong, what in (
        (method == "em", "--method em"),
        (settings.entropy != "causal", f"--entropy {settings.entropy}"),
        (settings.solver == "paper", "--solver paper"),
    ):
        if wrong:
            raise ValueError(f"{what} does not go with --dynamics fitted: leave it out")
    for name in ("ridge", "theta_prior", "features", "reference", "reference_strength", "unlabelled_weight"):
        if getattr(settings, name) != getattr(ModelSettings, name):
            raise ValueError(f"--{name.replace('_', '-')} does not go with --dynamics fitted: leave it out")
    return method
