"""Splits of the expert's trajectories, and the score of every candidate on what is held out."""

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
from messirl._defaults import CV
from messirl._types import Flags, Floats
from messirl.estimators.uniform import uniform_score
from messirl.execution import run
from messirl.planning.sampling import random_source
from messirl.problem.mdp import MDP
from messirl.problem.trajectories import Trajectories
from messirl.selection.candidates import Bench, Candidate

Split = tuple[Trajectories, Trajectories]
Screen = Callable[[Trajectories], Flags]
SCALES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)
ALONE = (
    "one expert trajectory: nothing can be held out, and it cannot be divided either, since {why}. So neither lambda0 "
    "nor the similarity can be chosen by validation: set them yourself, and see with selection.stability how much the "
    "policy hangs on which unlabelled trajectories there happened to be"
)


class NothingHeldOut(ValueError):
    """Raised where there is one expert trajectory that cannot be divided, so that nothing can be held out."""


def splits(
    mdp: MDP, expert: Trajectories, cv: int = CV, groups: npt.ArrayLike | None = None, random_state: Any = None
) -> list[Split]:
    """Pairs (train, held out): by group if there are groups; else one by one up to 2·cv trajectories; else cv folds.

    A single trajectory of an endless problem is divided in time: what comes later is held out.
    """
    n = len(expert)
    if not is_whole(cv):
        raise TypeError(f"cv={cv!r}: give a whole number of folds")
    if cv < 2:
        raise ValueError(f"cv={cv}: at least two folds are needed")
    if groups is not None:
        labels = np.asarray(groups)
        if labels.shape != (n,):
            raise ValueError(f"groups has shape {labels.shape}: give one label for each of the {n} expert trajectories")
        if np.unique(labels).size < 2:
            raise ValueError("groups names one group only: nothing can be held out; give no groups, or more data")
        pairs = GroupKFold(min(cv, np.unique(labels).size)).split(np.zeros(n), groups=labels)
        return [(expert[train], expert[test]) for train, test in pairs]
    if n == 1:
        return _later_parts(mdp, expert)
    folds = KFold(n) if n <= 2 * cv else KFold(cv, shuffle=True, random_state=_seed(random_state))
    return [(expert[train], expert[test]) for train, test in folds.split(np.zeros(n))]


def _later_parts(mdp: MDP, expert: Trajectories) -> list[Split]:
    why = ""
    if expert.goals is not None or mdp.terminal[expert.last[0]]:
        why = "it ends where it should, and a part of it would not"
    elif mdp.horizon is not None:
        why = f"a trajectory has {mdp.horizon} states"
    elif expert.lengths[0] < 8:
        why = f"it has only {expert.lengths[0]} states"
    if why:
        raise NothingHeldOut(ALONE.format(why=why))
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
    """Held-out log-probability per step of C candidates on K splits.

    Attributes
    ----------
    candidates : list of Candidate
        λ0 = 0 first.
    plain : array (C, K)
        The scores of the fits as they are.
    scores : array (C, K)
        The scores of the fits with θ multiplied by `scale`.
    scale : array (C,)
        The multiple of θ, one for all splits, with which a candidate predicts best.
    chance : float
        The score of the policy that takes every allowed action with the same probability.
    """

    candidates: list[Candidate]
    plain: Floats
    scores: Floats
    scale: Floats
    chance: float = -np.inf

    def gains(self, over: int = 0) -> tuple[Floats, Floats]:
        """The mean gain over a candidate, by default λ0 = 0, and its standard error; −inf and 0 where not finite."""
        with np.errstate(invalid="ignore"):
            gap = self.scores - self.scores[over]
            gain, spread = gap.mean(axis=1), gap.std(axis=1, ddof=1) / np.sqrt(gap.shape[1])
        lost = ~np.isfinite(gain)
        return np.where(lost, -np.inf, gain), np.where(lost, 0.0, spread)

    def rows(self) -> list[dict[str, Any]]:
        """One dict per candidate."""
        gain, spread = self.gains()
        return [
            {
                "candidate": str(c),
                "method": c.method,
                "lambda0": c.lambda0,
                "score": float(self.plain[i].mean()),
                "calibrated": float(self.scores[i].mean()),
                "scale": float(self.scale[i]),
                "gain": float(gain[i]),
                "gain_se": float(spread[i]),
            }
            for i, c in enumerate(self.candidates)
        ]


def cross_validate(
    mdp: MDP,
    every: Sequence[Candidate],
    pairs: Sequence[Split],
    unlabelled: Trajectories | None,
    *,
    scales: Sequence[float] = SCALES,
    screen: Screen | None = None,
    progress: Any = None,
    executor: Any = None,
    **options: Any,
) -> Validation:
    """Score every candidate on every split.

    screen : from the training part of a split to which unlabelled trajectories look like the expert's, for "Screened"
    progress : called with (done, all) after each fit, or with an executor after each split
    executor : runs the splits (see execution.run); None: this process

    With few trajectories the optimum is far too confident: θ runs to its bound, and held-out log-likelihood mostly
    punishes its size. But what matters about a reward is which moves it prefers. So each candidate is scored at the
    multiple of its θ, one for all splits, that predicts the held-out moves best (scales=(1.0,) scores θ as it is).
    """
    if any(int((test.lengths - 1).sum()) == 0 for _, test in pairs):
        raise ValueError("a held-out trajectory makes no step: there is nothing to score; drop such trajectories")
    # Leaving out either of two equal trajectories leaves the same rest, which is fitted once.
    tasks = [(train, [test for _, test in same]) for train, same in groupby(pairs, key=lambda pair: pair[0])]
    told = count(1)
    each = None if executor is not None else lambda: progress and progress(next(told), len(pairs) * len(every))
    work = _Fits(mdp, tuple(every), unlabelled, tuple(scales), screen, options, each)
    table = np.concatenate(list(run(work, tasks, executor, None if each else progress)), axis=1)
    best = table.mean(axis=1).argmax(axis=1)
    plain = table[:, :, int(np.argmin(np.abs(np.asarray(scales) - 1.0)))]
    scores = table[np.arange(len(every)), :, best]
    chance = float(np.mean([uniform_score(mdp, test) for _, test in pairs]))
    return Validation(list(every), plain, scores, np.asarray(scales)[best], chance)


@dataclass(frozen=True)
class _Fits:
    """Every candidate fitted to one training part and scored on what was held out of it, (C, K, scales)."""

    mdp: MDP
    every: tuple[Candidate, ...]
    unlabelled: Trajectories | None
    scales: tuple[float, ...]
    screen: Screen | None
    options: dict[str, Any]
    each: Callable[[], object] | None  # called after each fit

    def __call__(self, split: tuple[Trajectories, list[Trajectories]]) -> Floats:
        train, tests = split
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a warning that the parts of a divided trajectory are short
            alike = None if self.screen is None else self.screen(train)
            bench = Bench(self.mdp, train, self.unlabelled, alike=alike, **self.options)
            table = np.empty((len(self.every), len(tests), len(self.scales)))
            for i, (_, theta) in enumerate(bench.path(self.every)):
                for k, test in enumerate(tests):
                    steps = int((test.lengths - 1).sum())
                    table[i, k] = [bench.score(scale * theta, test) / steps for scale in self.scales]
                    if self.each is not None:
                        self.each()
        return table


def _seed(random_state: Any) -> int | None:
    return None if random_state is None else int(random_source(random_state).randint(0, 2**31 - 1))
