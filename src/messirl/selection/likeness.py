"""How much unlabelled trajectories look like the expert's, judged by a fit to the experts alone.

A reward is learnt from the experts only, with a normal prior chosen by their own held-out trajectories.
The likeness of a trajectory is its log-probability per step under the resulting policy π minus that under the uniform
policy u: above zero it goes where the expert would, below zero it is better explained by chance.

Likeness asks for more than a leaning: whoever does half the time what the expert does, and else wanders, has little of
it. Whether trajectories *lean* towards the expert at all is how much likelier their steps are under π than under u, the
mean of π/u − 1: zero for a random walk, however sharp π is.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from messirl._defaults import CV, MAX_ITER, THETA_MAX
from messirl._types import Flags, Floats, Ints
from messirl.estimators.uniform import uniform_policy, uniform_score
from messirl.evaluation.paired import Gain, paired_gain
from messirl.planning import NoFiniteValue
from messirl.planning.likelihood import log_policies, step_logs
from messirl.problem.faults import check_trajectories
from messirl.problem.gathered import gathered
from messirl.problem.mdp import MDP
from messirl.problem.streamed import StreamedTrajectories
from messirl.problem.trajectories import Trajectories
from messirl.selection.candidates import Bench, Candidate, Fit
from messirl.selection.validation import Split, splits
from messirl.similarity import CompleteGraph

LEANING = 0.9  # confidence of the interval of leaning, which must lie above zero
PRIORS = (0.1, 0.3, 1.0, 3.0, 10.0)  # standard deviations of the weights, in their own units
ALONE = Candidate("MaxEnt")
LESSONS = 64  # sets of experts whose fits an MDP keeps


@dataclass(frozen=True)
class Lean(Gain):
    """How much likelier steps are for an expert than by chance: the mean of π/u − 1, and the ends of its interval.

    Attributes
    ----------
    mean : float
        Zero for a random walk.
    low, high : float
        The ends of its 90 % interval; NaN where a single trajectory allows none.
    """

    def __str__(self) -> str:
        return f"{1.0 + self.mean:.2f} times as likely for an expert as by chance"


@dataclass(frozen=True)
class Likeness:
    """How much better than chance the experts explain trajectories, in nats per step.

    Attributes
    ----------
    unlabelled : array (u,)
        Of each unlabelled trajectory.
    expert : float
        The mean over held-out expert trajectories.
    prior : float
        `theta_prior` of the fit to the experts alone.
    lean : Lean
        How much the unlabelled trajectories lean towards the expert, with its 90 % interval.
    """

    unlabelled: Floats
    expert: float
    prior: float
    lean: Lean

    @property
    def mean(self) -> float:
        """The mean over the unlabelled trajectories."""
        return float(self.unlabelled.mean())

    @property
    def alike(self) -> Flags:
        """Which unlabelled trajectories the experts explain better than chance does."""
        return np.asarray(self.unlabelled > 0.0)

    @property
    def leaning(self) -> bool | None:
        """Whether they clearly lean towards the expert; None where the expert has no direction to lean towards."""
        return None if self.expert <= 0.0 else bool(self.lean.clear and self.lean.mean > 0.0)


def likeness(
    mdp: MDP,
    expert: Trajectories,
    unlabelled: Trajectories | StreamedTrajectories,
    *,
    cv: int = CV,
    groups: npt.ArrayLike | None = None,
    random_state: Any = None,
    theta_max: float = THETA_MAX,
    max_iter: int = MAX_ITER,
    tol: float = 1e-3,
) -> Likeness:
    """How much each of the unlabelled trajectories looks like the expert's, by a fit to the experts alone.

    That is its log-probability per step under the policy learnt, less that under the uniform one. The model is the
    causal one. If an endless problem has one expert trajectory, its later part is held out.
    """
    if isinstance(unlabelled, StreamedTrajectories):  # checked as they are read
        first, chunks = gathered(mdp, unlabelled).first, unlabelled.chunks(mdp)
    else:
        check_trajectories(mdp, unlabelled, "unlabelled")
        first, chunks = np.bincount(unlabelled.first, minlength=mdp.n_states), iter([unlabelled])
    pairs = splits(mdp, expert, cv, groups, random_state)
    options: dict[str, Any] = {"theta_max": theta_max, "max_iter": max_iter, "tol": tol}
    options |= {"yardstick": CompleteGraph()}
    lessons: dict[str, _Lesson] = mdp.memo("what experts alone teach", dict)
    base = None if mdp.reference is None else hashlib.sha256(mdp.reference.tobytes()).hexdigest()
    key = f"{_key(pairs)} {theta_max} {max_iter} {tol} {base}"
    if key not in lessons:
        if len(lessons) >= LESSONS:
            lessons.pop(next(iter(lessons)))  # the oldest
        lessons[key] = _learn(mdp, expert, pairs, options)
    lesson = lessons[key]
    start = (first + np.bincount(expert.first, minlength=mdp.n_states)).astype(np.float64)
    reward, parts = mdp.reward(lesson.theta), list[tuple[Floats, Floats, Ints]]()
    for some in chunks:
        parts.append((*_explained(mdp, reward, some, start), some.lengths - 1))
    ratio, times, steps = (np.concatenate(column) for column in zip(*parts, strict=True))
    lean = paired_gain(times, steps.astype(np.float64), steps, LEANING)
    return Likeness(ratio / np.maximum(steps, 1), lesson.gain, lesson.prior, Lean(lean.mean, lean.low, lean.high))


@dataclass(frozen=True)
class _Lesson:
    """What was learnt from the experts alone; it does not depend on the unlabelled trajectories."""

    theta: Floats
    gain: float
    prior: float


def _learn(mdp: MDP, expert: Trajectories, pairs: Sequence[Split], options: dict[str, Any]) -> _Lesson:
    """The prior, and θ with it, that predict held-out experts best."""
    bench, fits = Bench(mdp, expert, None, **options), list[Fit]()
    for prior in PRIORS:  # from narrow to wide, each from where the last one ended
        bench.theta_prior = prior
        theta = bench.fit(ALONE, fits[-1] if fits else None)
        fits.append(Fit(ALONE, theta, bench.bend(ALONE, theta)))
    scores = np.zeros(len(PRIORS))
    for train, test in pairs:
        steps = max(int((test.lengths - 1).sum()), 1) * len(pairs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a warning that the parts of a divided trajectory are short
            part = Bench(mdp, train, None, **options)
        for i, fit in enumerate(fits):
            part.theta_prior = PRIORS[i]
            scores[i] += part.score(ALONE, part.fit(ALONE, fit), test) / steps
    best = int(np.argmax(scores))
    chance = np.mean([uniform_score(mdp, test) for _, test in pairs])
    return _Lesson(fits[best].theta, float(scores[best] - chance), PRIORS[best])


def _explained(mdp: MDP, reward: Floats, some: Trajectories, start: Floats) -> tuple[Floats, Floats]:
    """Σ log π/u and Σ π/u of every trajectory, (n,) each; −inf and 0 where the experts' reward has no finite value."""
    logs, times = np.full(len(some), -np.inf), np.zeros(len(some))
    with np.errstate(divide="ignore"):
        chance = np.log(uniform_policy(mdp, None))
    try:
        for which, log_policy in log_policies(mdp, reward, some, start):
            part = some[which]
            trip = np.repeat(np.arange(len(part)), part.lengths - 1)
            gap = step_logs(mdp, log_policy, part) - step_logs(mdp, chance, part)
            logs[which] = np.bincount(trip, gap, len(part))
            times[which] = np.bincount(trip, np.exp(gap), len(part))
    except NoFiniteValue:
        alike = np.stack([some.first, some.first if some.goals is None else some.goals], axis=1)
        kinds, kind = np.unique(alike, axis=0, return_inverse=True)
        for k in range(len(kinds)) if len(kinds) > 1 else ():
            which = np.flatnonzero(kind.ravel() == k)
            here = np.bincount(some.first[which], minlength=mdp.n_states).astype(np.float64)
            logs[which], times[which] = _explained(mdp, reward, some[which], here)
    return logs, times


def _key(pairs: Sequence[Split]) -> str:
    """A short text that identifies the trajectories of all splits."""
    content = hashlib.sha256()
    for one in (part for pair in pairs for part in pair):
        for array in (one.states, one.offsets, one.actions, one.goals):
            content.update(b"none" if array is None else array.tobytes())
    return content.hexdigest()
