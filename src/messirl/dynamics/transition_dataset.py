"""Recorded episodes as a table of distinct states, for fits to continuous states.

    ζ = (s_0, a_0, s_1, …, s_T),   s_t ∈ R^k,   a_t ∈ {0, …, A − 1}

A recording is anything with `observations` (T + 1, k), `actions` (T,) and `terminated`. The last observation of one
that terminated is a terminal state; an equal vector from which a step was made counts as another state.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from messirl._npz import check_integer_range
from messirl._text import count_noun
from messirl._types import Flags, Floats, Ints
from messirl.data.feature_counts import LONG_TAIL
from messirl.data.mdp_validation import LARGEST_VALUE
from messirl.data.trajectories import Trajectories
from messirl.similarity.standardize import deviations

FeatureMap = Callable[[Floats], Any]


@dataclass(frozen=True, eq=False)
class Samples:
    """Recordings, experts first, over the N distinct states that occur in them.

    points : (N, k)
    terminal : (N,) bool
    trajectories : their state numbers and actions
    n_expert : how many of them are the expert's
    n_actions : A
    """

    points: Floats
    terminal: Flags
    trajectories: Trajectories
    n_expert: int
    n_actions: int

    @property
    def start(self) -> Floats:
        """The distribution of the expert's first states, (N,)."""
        first = self.trajectories.first[: self.n_expert]
        return np.bincount(first, minlength=len(self.points)) / self.n_expert

    def check(self) -> None:
        """Raise a ValueError unless the parts, read from a file, fit together."""
        n, each = len(self.points), self.trajectories
        if self.points.dtype.kind != "f" or not np.isfinite(self.points).all() or each.actions is None:
            raise ValueError("its samples are not points with actions")
        if self.terminal.shape != (n,) or self.terminal.dtype != np.bool_:
            raise ValueError("its samples do not say which states end")
        check_integer_range("samples_states", each.states, 0, n - 1)
        check_integer_range("samples_actions", each.actions, 0, self.n_actions - 1)
        if not 1 <= self.n_expert <= len(each):
            raise ValueError(f"{self.n_expert} of its {len(each)} samples are experts'")

    def moves(self) -> Iterator[tuple[Ints, Ints]]:
        """Yield, for each action, the states it was taken in and the states it led to."""
        left = np.flatnonzero(self.trajectories.leaves)
        actions = self.trajectories.actions
        assert actions is not None
        for action in range(self.n_actions):
            at = left[actions == action]
            yield self.trajectories.states[at], self.trajectories.states[at + 1]


@dataclass(frozen=True, eq=False)
class Scale:
    """Standardisation of states, so that distances treat all coordinates alike."""

    centre: Floats
    unit: Floats

    @classmethod
    def of(cls, points: Floats) -> Self:
        """Estimate centre and spread from points (n, k); a coordinate that never changes has the unit 1."""
        spread = deviations(points)
        return cls(points.mean(axis=0), np.where(spread > 0, spread, 1.0))

    def __call__(self, points: Floats) -> Floats:
        """Return points (n, k) in these units."""
        return np.asarray((points - self.centre) / self.unit)


def read_samples(expert: Iterable[Any], unlabelled: Iterable[Any] | None, n_actions: int | None) -> Samples:
    """Return the samples of both sets, checked: at least two actions, and every action taken somewhere."""
    recordings = checked_recordings(expert, "expert")
    n_expert = len(recordings)
    if unlabelled is not None:
        recordings += checked_recordings(unlabelled, "unlabelled")
    widths = [points.shape[1] for points, _, _ in recordings]
    if len(set(widths)) > 1:
        other = next(i for i, width in enumerate(widths) if width != widths[0])
        place = f"expert: recording {other}" if other < n_expert else f"unlabelled: recording {other - n_expert}"
        raise ValueError(
            f"{place} has observations of {widths[other]} numbers, the first recording of {widths[0]}: all states "
            "need the same dimension"
        )
    actions = np.concatenate([taken for _, taken, _ in recordings])
    if actions.size == 0:
        raise ValueError("there are no transitions: give at least one recording with a step")
    n = int(actions.max()) + 1 if n_actions is None else n_actions
    _check_actions(actions, n)

    stacked = np.concatenate([points for points, _, _ in recordings])
    lengths = np.array([len(points) for points, _, _ in recordings])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ended = np.zeros(len(stacked))
    ended[offsets[1:] - 1] = [end for _, _, end in recordings]
    table, number = np.unique(np.column_stack([stacked, ended]), axis=0, return_inverse=True)
    trajectories = Trajectories(number.ravel(), offsets, actions)
    return Samples(np.ascontiguousarray(table[:, :-1]), table[:, -1] > 0, trajectories, n_expert, n)


def checked_recordings(recordings: Iterable[Any], name: str) -> list[tuple[Floats, Ints, bool]]:
    """Return (observations (T + 1, k), actions (T,), terminated) of every recording, checked."""
    if hasattr(recordings, "observations"):
        raise TypeError(f"{name} must be a list of recordings, not a single one")
    found = [_one(item, f"{name}: recording {i}") for i, item in enumerate(recordings)]
    if not found:
        raise ValueError(f"{name} is empty: at least one recording is needed")
    return found


def _one(item: Any, where: str) -> tuple[Floats, Ints, bool]:
    for part in ("observations", "actions", "terminated"):
        if not hasattr(item, part):
            raise TypeError(
                f"{where} has no {part}: a recording has observations (T + 1, k), actions (T,) and terminated"
            )
    points = as_points(item.observations, where)
    actions = np.asarray(item.actions)
    if actions.ndim == 2 and actions.shape[1] == 1:
        actions = actions[:, 0]
    if actions.ndim != 1 or (actions.size and actions.dtype.kind not in "iu"):
        raise TypeError(
            f"{where} has actions of {actions.dtype} and shape {actions.shape}: give one whole number per step"
        )
    if actions.size != len(points) - 1:
        raise ValueError(
            f"{where} has {count_noun(len(points), 'observation')} and {count_noun(actions.size, 'action')}: "
            "give one action per step"
        )
    return points, actions.astype(np.int64), bool(item.terminated)


def as_points(values: Any, where: str, k: int | None = None) -> Floats:
    """Return states as floats (n, k), finite, at least one; (n,) becomes (n, 1)."""
    raw = np.asarray(values)
    if raw.dtype.kind not in "fiub":
        raise TypeError(f"{where}: states must be numbers, not {raw.dtype}")
    points = raw.astype(np.float64)
    points = points[:, None] if points.ndim == 1 else points
    if points.ndim != 2 or 0 in points.shape or (k is not None and points.shape[1] != k):
        raise ValueError(f"{where}: states have shape {raw.shape}, give (n, {'k' if k is None else k})")
    if not np.isfinite(points).all():
        row = int(np.argmax(~np.isfinite(points).all(axis=1)))
        raise ValueError(f"{where}: state {row} is not finite: fill it in, or cut the recording there")
    if np.abs(points).max() > LARGEST_VALUE:
        row = int(np.argmax(np.abs(points).max(axis=1)))
        raise ValueError(
            f"{where}: state {row} reaches {np.abs(points).max():.2g}, outside the supported range: divide it"
        )
    return points


def _check_actions(actions: Ints, n_actions: int) -> None:
    if actions.min() < 0:
        raise ValueError(f"action {actions.min()} is not one of 0, 1, 2, …: number the actions from 0")
    if actions.max() >= n_actions:
        wrong = actions.max()
        raise ValueError(f"action {wrong} is not one of 0 … {n_actions - 1}: number them from 0, or raise n_actions")
    times = np.bincount(actions, minlength=n_actions)
    if n_actions == 1:
        raise ValueError("all recordings take the same action, 0: a reward cannot be learned without choices")
    if (times == 0).any():
        raise ValueError(
            f"action {int(np.argmin(times))} is never taken in any recording, so its effect is unknown: "
            "record it, or number the actions without it"
        )


def feature_table(features: FeatureMap, points: Floats, d: int | None = None) -> Floats:
    """Return f(s) of every point, (n, d), finite."""
    raw = np.asarray(features(points))
    shape = f"({len(points)}, {'d' if d is None else d})"
    if raw.dtype.kind not in "fiub":
        raise TypeError(f"features(states) are {raw.dtype}, not numbers")
    if raw.ndim != 2 or len(raw) != len(points) or raw.shape[1] == 0 or (d is not None and raw.shape[1] != d):
        raise ValueError(
            f"features(states) has shape {raw.shape} for states {points.shape}: it must be {shape}, one row per state"
        )
    table = raw.astype(np.float64)
    if not np.isfinite(table).all():
        row, column = np.argwhere(~np.isfinite(table))[0]
        raise ValueError(f"features(states)[{row}, {column}] is not finite, at state {points[row].tolist()}: fix it")
    return table


def sample_counts(samples: Samples, table: Floats, discount: float, which: slice) -> Floats:
    """Return the counts f_ζ = Σ_t γ^t f(s_t) of the trajectories in `which`, (n, d).

    A recording that did not terminate is treated as endless: its counts are divided by 1 − γ^T, T its states.
    """
    trajectories = samples.trajectories[which]
    weights = discount**trajectories.step
    terms = weights[:, None] * table[trajectories.states]
    counts = np.add.reduceat(terms, trajectories.offsets[:-1], axis=0)
    cut = ~samples.terminal[trajectories.last]
    tail = np.where(cut, discount**trajectories.lengths, 0.0)
    if tail.max() > LONG_TAIL:
        i = int(np.argmax(tail))
        warnings.warn(
            f"recording {i} of all, experts first, is cut after {trajectories.lengths[i]} states, where discount**T is "
            f"still {tail[i]:.2f}, and is treated as endless: record longer ones, or lower the discount",
            UserWarning,
            stacklevel=4,
        )
    return np.asarray(counts / (1.0 - tail)[:, None])
