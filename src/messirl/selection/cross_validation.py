"""Cross-validation: splits of the expert's trajectories, and held-out scores of every candidate."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count, groupby, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import GroupKFold, KFold

from messirl._checks import is_whole
from messirl._parameters import CV
from messirl._repr_html import card, grid
from messirl._types import Floats, Ints
from messirl.data.mdp import MDP
from messirl.data.streamed_trajectories import StreamedTrajectories
from messirl.data.trajectories import Trajectories
from messirl.inference.paired_gain import CONFIDENCE, Gain, paired_gain
from messirl.parallel import run
from messirl.planning.sampling import random_source
from messirl.selection.candidates import Candidate, CandidateFit, CandidateFitter

Split = tuple[Trajectories, Trajectories]
ONE_BY_ONE = 4  # up to this times cv units are held out one by one
EXPERT_ONLY_CANDIDATE = "one expert trajectory: nothing can be held out, and it cannot be divided either, since {why}"


class NothingHeldOut(ValueError):
    """Error for a single expert trajectory that cannot be divided, so that nothing can be held out."""


def make_splits(
    mdp: MDP, expert: Trajectories, cv: int = CV, groups: npt.ArrayLike | None = None, random_state: Any = None
) -> list[Split]:
    """Return pairs (train, held out): one by one up to 4·cv trajectories, else in cv folds.

    Groups, if given, are held out as a whole, in at most 4·cv folds, and each fold is a unit.

    A single trajectory of an endless problem is divided in time, and the later part is held out.
    """
    if groups is None and len(expert) == 1:
        _check_cv(cv)
        return _later_parts(mdp, expert)
    return [(expert[train], expert[test]) for train, test in folds(len(expert), cv, groups, random_state)]


def folds(
    n: int, cv: int = CV, groups: npt.ArrayLike | None = None, random_state: Any = None
) -> list[tuple[Ints, Ints]]:
    """Return the rows of each split of n ≥ 2 trajectories: those for training, and those that are held out."""
    _check_cv(cv)
    rows = np.zeros(n)
    if groups is not None:
        labels = np.asarray(groups)
        if labels.shape != (n,):
            raise ValueError(f"groups has shape {labels.shape}: give one label for each of the {n} expert trajectories")
        many = np.unique(labels).size
        if many < 2:
            raise ValueError("groups names one group only: nothing can be held out; give no groups, or more data")
        return list(GroupKFold(min(many, ONE_BY_ONE * cv)).split(rows, groups=labels))
    few = n <= ONE_BY_ONE * cv
    made = KFold(n) if few else KFold(cv, shuffle=True, random_state=_seed(random_state))
    return list(made.split(rows))


def _check_cv(cv: int) -> None:
    if not is_whole(cv):
        raise TypeError(f"cv={cv!r}: give a whole number of folds")
    if cv < 2:
        raise ValueError(f"cv={cv}: at least two folds are needed")


def _later_parts(mdp: MDP, expert: Trajectories) -> list[Split]:
    why = ""
    if expert.goals is not None or mdp.terminal[expert.last[0]]:
        why = "it ends at a goal or terminal state, and its parts would not"
    elif mdp.horizon is not None:
        why = f"a trajectory has {mdp.horizon} states"
    elif expert.lengths[0] < 8:
        why = f"it has only {expert.lengths[0]} states"
    if why:
        raise NothingHeldOut(EXPERT_ONLY_CANDIDATE.format(why=why))
    states, actions, _ = expert[0]
    parts = []
    for cut, end in pairwise([*(len(states) * k // 4 for k in (1, 2, 3)), len(states) - 1]):
        moves = (None, None) if actions is None else (actions[:cut], actions[cut:end])
        before, after = states[: cut + 1], states[cut : end + 1]
        train = Trajectories(before, [0, before.size], moves[0])
        parts.append((train, Trajectories(after, [0, after.size], moves[1])))
    return parts


@dataclass(frozen=True)
class Validation:
    """Held-out log-probabilities of C candidates: each of n units under fits that have not seen it.

    A unit is a trajectory or, if whole groups are held out, all trajectories of a split.

    Attributes
    ----------
    candidates : list of Candidate
        The experts only first.
    logs : array (C, n)
        The log-probability of each unit.
    steps : array of int (n,)
        The number of steps of each unit.
    """

    candidates: list[Candidate]
    logs: Floats
    steps: Ints

    @property
    def scores(self) -> Floats:
        """The log-probability per step of every candidate, (C,), all units together."""
        return np.asarray(self.logs.sum(axis=1) / self.steps.sum())

    def _repr_html_(self) -> str:
        order = np.argsort(-self.scores, kind="stable")
        rows = [(self.candidates[i], float(self.scores[i]), self.gain(int(i), 0)) for i in order]
        heads = ("candidate", "nats per step", f"over {self.candidates[0]}")
        note = f"{len(self.candidates)} candidates on {self.steps.size:,} held-out units"
        return card("Validation", note, {}, grid("candidates", heads, rows))

    def gain(self, one: int, over: int, confidence: float = CONFIDENCE) -> Gain:
        """Return what one candidate gains over another, in nats per step, paired by unit, with its interval."""
        return paired_gain(self.logs[one], self.logs[over], self.steps, confidence)

    def rows(self, over: int = 0) -> list[dict[str, Any]]:
        """Return one dict per candidate; gains are over the candidate `over`."""
        out = []
        for i, c in enumerate(self.candidates):
            gain = self.gain(i, over)
            own = {"candidate": str(c), "method": c.method, "lambda0": c.lambda0, "score": float(self.scores[i])}
            own |= {"strength": c.strength, "weight": c.weight}
            out.append({**own, "gain": gain.mean, "gain_low": gain.low, "gain_high": gain.high})
        return out


def cross_validate(
    mdp: MDP,
    every: Sequence[Candidate],
    pairs: Sequence[Split],
    unlabelled: Trajectories | StreamedTrajectories | None,
    *,
    expert: Trajectories | None = None,
    known: Sequence[CandidateFit] | None = None,
    together: bool = False,
    progress: Any = None,
    executor: Any = None,
    **options: Any,
) -> Validation:
    """Score every candidate on every split.

    expert : all experts, if they are to be fitted first: fits on splits are warm-started there, and faster
    known : those fits, one per candidate, if they were made before (`CandidateFitter.path`)
    together : whether the held-out part of a split is one unit: trajectories of one group are not independent
    progress : called with (done, all) after each fit, or with an executor after each split
    executor : runs the splits (see execution.run); None: this process
    options : for the `CandidateFitter` that fits
    """
    pairs = [(train, test) for train, test in pairs if (test.lengths > 1).any()]  # others cannot be scored
    if not pairs:
        raise ValueError("no held-out trajectory makes a step: there is nothing to score")
    # Leaving out either of two equal trajectories gives the same training set, which is fitted once.
    tasks = [(train, [test for _, test in same]) for train, same in groupby(pairs, key=lambda pair: pair[0])]
    first = known is None and expert is not None
    told, fits = count(1), (len(tasks) + first) * len(every)
    each = None if executor is not None else lambda: progress and progress(next(told), fits)
    if known is None and expert is not None:
        made = []
        for fit in CandidateFitter(mdp, expert, unlabelled, **options).path(every):
            made.append(fit)
            if each is not None:
                each()
        known = made
    work = _Fits(mdp, tuple(every), unlabelled, options, known, each)
    found = list(run(work, tasks, executor, None if each else progress))
    logs = [one.sum(axis=1, keepdims=True) if together else one for parts in found for one in parts]
    steps = [np.array([own.sum()]) if together else own for own in (test.lengths - 1 for _, test in pairs)]
    return Validation(list(every), np.concatenate(logs, axis=1), np.concatenate(steps))


@dataclass(frozen=True)
class _Fits:
    """Fits of every candidate to one training part, with log-probabilities (C, n) of each held-out part."""

    mdp: MDP
    every: tuple[Candidate, ...]
    unlabelled: Trajectories | StreamedTrajectories | None
    options: dict[str, Any]
    known: Sequence[CandidateFit] | None
    each: Callable[[], object] | None  # called after each fit

    def __call__(self, split: tuple[Trajectories, list[Trajectories]]) -> list[Floats]:
        train, tests = split
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a warning that the parts of a divided trajectory are short
            bench = CandidateFitter(self.mdp, train, self.unlabelled, **self.options)
            out = [np.empty((len(self.every), len(test))) for test in tests]
            for i, fit in enumerate(bench.path(self.every, self.known)):
                for part, test in zip(out, tests, strict=True):
                    part[i] = bench.log_probabilities(fit.candidate, fit.theta, test)
                if self.each is not None:
                    self.each()
        return out


def _seed(random_state: Any) -> int | None:
    return None if random_state is None else int(random_source(random_state).randint(0, 2**31 - 1))
