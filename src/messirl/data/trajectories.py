"""Trajectories ζ = (s_1, a_1, s_2, …, s_T) of different lengths, stored as flat arrays.

All states lie in one array, one trajectory after the other; `offsets[i] : offsets[i+1]` is trajectory i. A trajectory
of T states has T − 1 actions, so its actions lie at `offsets[i] − i : offsets[i+1] − (i+1)`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from messirl._checks import is_whole
from messirl._text import count_noun
from messirl._types import Flags, Ints
from messirl.data.repr_html import trajectories_html


class Trajectory(NamedTuple):
    """One trajectory.

    Attributes
    ----------
    states : array of int (T,)
        The states in the order in which they were visited.
    actions : array of int (T − 1,) or None
        The action of each step; None where actions are not known.
    goal : int or None
        The state it was heading for; None without goals.
    """

    states: Ints
    actions: Ints | None
    goal: int | None


class Trajectories:
    """A set of trajectories, with or without actions, with or without goals; usually made by `from_lists`.

    It behaves as a sequence: `len`, iteration, `trajectories[3]`, `trajectories[[0, 2]]`, and `+` concatenates two
    sets.

    Parameters
    ----------
    states : array of int
        The states of all trajectories, one trajectory after the other.
    offsets : array of int (n + 1,)
        Trajectory i is `states[offsets[i] : offsets[i + 1]]`.
    actions : array of int, optional
        One per step: a trajectory of T states has T − 1 of them.
    goals : array of int (n,), optional
        The state each trajectory was heading for, where it ends.

    Attributes
    ----------
    states, offsets, actions, goals
        As given, read-only.

    References
    ----------
    Audiffren, Valko, Lazaric, Ghavamzadeh: Maximum Entropy Semi-Supervised Inverse Reinforcement Learning, IJCAI 2015,
    section 2.

    Examples
    --------
    >>> from messirl import Trajectories
    >>> walks = Trajectories.from_lists([[0, 1, 5], [2, 5]], actions=[[1, 0], [0]])
    >>> len(walks), walks.lengths
    (2, array([3, 2]))
    >>> walks[1].states
    array([2, 5])
    """

    __slots__ = ("actions", "goals", "offsets", "states")

    states: Ints
    offsets: Ints
    actions: Ints | None
    goals: Ints | None

    def __init__(
        self,
        states: npt.ArrayLike,
        offsets: npt.ArrayLike,
        actions: npt.ArrayLike | None = None,
        goals: npt.ArrayLike | None = None,
    ) -> None:
        flat, bounds = _integers("states", states), _integers("offsets", offsets)
        if bounds.size == 0 or bounds[0] != 0 or bounds[-1] != flat.size:
            raise ValueError(f"offsets must run from 0 to the number of states, {flat.size}")
        short = np.diff(bounds) < 1
        if short.any():
            raise ValueError(f"trajectory {int(np.argmax(short))} has no state: drop it")
        n = bounds.size - 1
        moves = None if actions is None else _integers("actions", actions)
        if moves is not None and moves.size != flat.size - n:
            raise ValueError(
                f"{count_noun(moves.size, 'action')} for {count_noun(flat.size, 'state')} in "
                f"{count_noun(n, 'trajectory')}: "
                f"give one action per step, {flat.size - n} in all"
            )
        ends = None if goals is None else _integers("goals", goals)
        if ends is not None and ends.size != n:
            raise ValueError(f"{count_noun(ends.size, 'goal')} for {count_noun(n, 'trajectory')}: give one each")
        for name, value in (("states", flat), ("offsets", bounds), ("actions", moves), ("goals", ends)):
            if value is not None:
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    @classmethod
    def from_lists(
        cls,
        states: Iterable[Sequence[int]],
        actions: Iterable[Sequence[int]] | None = None,
        goals: npt.ArrayLike | None = None,
    ) -> Trajectories:
        """Make a set from one sequence of states per trajectory and, if known, one of actions, one entry shorter."""
        if not isinstance(states, Iterable):
            raise TypeError(f"states is {states!r}: give a list of trajectories, [[0, 1, 5], [2, 5]]")
        rows = [_integers(f"trajectory {i}", row) for i, row in enumerate(states)]
        for i, row in enumerate(rows):
            if row.size == 0:
                raise ValueError(f"trajectory {i} has no state: drop it")
        flat_actions = None
        if actions is not None:
            moves = [_integers(f"the actions of trajectory {i}", row) for i, row in enumerate(actions)]
            if len(moves) != len(rows):
                raise ValueError(
                    f"{count_noun(len(moves), 'list')} of actions for {count_noun(len(rows), 'trajectory')}: "
                    "give one each"
                )
            for i, (row, move) in enumerate(zip(rows, moves, strict=True)):
                if move.size != row.size - 1:
                    raise ValueError(
                        f"trajectory {i} has {count_noun(row.size, 'state')} and {count_noun(move.size, 'action')}: "
                        f"give one action per step, {row.size - 1}"
                    )
            flat_actions = _joined(moves)
        offsets = np.concatenate([[0], np.cumsum([row.size for row in rows], dtype=np.int64)])
        return cls(_joined(rows), offsets, flat_actions, goals)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Trajectories are immutable: make new ones")

    def __reduce__(self) -> tuple[Any, ...]:
        return Trajectories, (self.states, self.offsets, self.actions, self.goals)

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __iter__(self) -> Iterator[Trajectory]:
        return (self[i] for i in range(len(self)))

    @overload
    def __getitem__(self, index: int | np.integer[Any]) -> Trajectory: ...
    @overload
    def __getitem__(self, index: slice | npt.ArrayLike) -> Trajectories: ...
    def __getitem__(self, index: Any) -> Trajectory | Trajectories:
        if is_whole(index):
            return self._one(int(index))
        return self._some(index)

    def _one(self, i: int) -> Trajectory:
        if not -len(self) <= i < len(self):
            raise IndexError(f"trajectory {i} is out of range: there are {len(self)}")
        i %= len(self)
        lo, hi = int(self.offsets[i]), int(self.offsets[i + 1])
        actions = None if self.actions is None else self.actions[lo - i : hi - i - 1]
        return Trajectory(self.states[lo:hi], actions, None if self.goals is None else int(self.goals[i]))

    def _some(self, index: Any) -> Trajectories:
        if isinstance(index, slice):
            which = np.arange(len(self))[index]
        else:
            key = np.asarray(index)
            which = np.arange(len(self))[key if key.size else key.astype(np.int64)]
        lengths = self.lengths[which]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        states = self.states[_ranges(self.offsets[which], lengths)]
        actions = None
        if self.actions is not None:
            actions = self.actions[_ranges(self.offsets[which] - which, lengths - 1)]
        return Trajectories(states, offsets, actions, None if self.goals is None else self.goals[which])

    def __add__(self, other: object) -> Trajectories:
        """Concatenate two sets. Actions are kept only if both sets have them; goals must be in both or neither."""
        if not isinstance(other, Trajectories):
            return NotImplemented
        if len(self) == 0 or len(other) == 0:
            return other if len(self) == 0 else self
        if (self.goals is None) != (other.goals is None):
            raise ValueError("one of the two sets has goals and the other has none: give both goals, or neither")
        offsets = np.concatenate([self.offsets, self.offsets[-1] + other.offsets[1:]])
        return Trajectories(
            np.concatenate([self.states, other.states]),
            offsets,
            None if self.actions is None or other.actions is None else np.concatenate([self.actions, other.actions]),
            None if self.goals is None or other.goals is None else np.concatenate([self.goals, other.goals]),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trajectories):
            return NotImplemented
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in self.__slots__)

    def __repr__(self) -> str:
        if len(self) == 0:
            return "Trajectories(none)"
        low, high = int(self.lengths.min()), int(self.lengths.max())
        with_actions = "with" if self.actions is not None else "without"
        goals = "" if self.goals is None else f", {np.unique(self.goals).size} goals"
        return f"Trajectories({len(self)} of {low} to {high} states, {with_actions} actions{goals})"

    _repr_html_ = trajectories_html

    @property
    def lengths(self) -> Ints:
        """Number of states T of each trajectory, (n,)."""
        return np.diff(self.offsets)

    @property
    def first(self) -> Ints:
        """First state of each trajectory, (n,)."""
        return self.states[self.offsets[:-1]]

    @property
    def last(self) -> Ints:
        """Last state of each trajectory, (n,)."""
        return self.states[self.offsets[1:] - 1]

    @property
    def step(self) -> Ints:
        """Position t of each entry of `states` in its trajectory."""
        return np.arange(self.states.size) - np.repeat(self.offsets[:-1], self.lengths)

    @property
    def leaves(self) -> Flags:
        """Mask of the entries of `states` from which a step starts: all but the last of each trajectory."""
        left = np.ones(self.states.size, dtype=bool)
        left[self.offsets[1:] - 1] = False
        return left

    def locate(self, entry: int) -> tuple[int, int]:
        """Return the trajectory and step of an entry of `states`."""
        i = int(np.searchsorted(self.offsets, entry, side="right")) - 1
        return i, int(entry - self.offsets[i])


TrajectoriesLike = Trajectories | Sequence[Sequence[int]] | Sequence[Trajectory]
PAIRS = (
    "{name} is a list of pairs, which may be trajectories of two states or states with their actions: give "
    "Trajectories.from_lists(states, actions=...), or lists instead of tuples for trajectories of two states"
)


@overload
def as_trajectories(given: TrajectoriesLike, name: str = ...) -> Trajectories: ...
@overload
def as_trajectories(given: TrajectoriesLike | None, name: str = ...) -> Trajectories | None: ...
@overload
def as_trajectories(given: Any, name: str = ...) -> Any: ...
def as_trajectories(given: Any, name: str = "trajectories") -> Any:
    """Convert a list of lists of states, or of single trajectories, to Trajectories; return anything else unchanged.

    Ambiguous input is refused: a flat list, and pairs.
    """
    if not isinstance(given, list | tuple | np.ndarray) or (len(given) and isinstance(given[0], str | os.PathLike)):
        return given
    if len(given) and all(isinstance(one, Trajectory) for one in given):
        actions, goals = [one.actions for one in given], [one.goal for one in given]
        known = not any(one is None for one in actions), not any(one is None for one in goals)
        lists: Any = actions if known[0] else None, goals if known[1] else None
        return Trajectories.from_lists([one.states for one in given], *lists)
    if len(given) and not np.iterable(given[0]):
        raise TypeError(
            f"{name} is one flat list: give a list of trajectories, [[0, 1, 5], [2, 5]], even if there is only one"
        )
    if isinstance(given, np.ndarray) and given.ndim == 2 and given.shape[1] == 2:
        raise TypeError(PAIRS.format(name=name))
    if len(given) and all(isinstance(one, tuple) and len(one) == 2 for one in given):
        raise TypeError(PAIRS.format(name=name))
    return Trajectories.from_lists(given)


def _integers(what: str, values: npt.ArrayLike) -> Ints:
    try:
        raw = np.asarray(values)
    except ValueError:  # sequences of different lengths in one
        raise ValueError(f"{what} must be a flat sequence of whole numbers, not of sequences") from None
    if raw.ndim != 1:
        raise ValueError(f"{what} must be a flat sequence of whole numbers, not of shape {raw.shape}")
    if raw.size == 0:
        return np.zeros(0, dtype=np.int64)
    if raw.dtype.kind not in "iu":
        raise TypeError(f"{what} must hold whole numbers, not {raw.dtype}")
    if raw.dtype.kind == "u" and raw.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{what} has {raw.max()}, too large for 64 bits: number from 0")
    return raw.astype(np.int64)


def _joined(rows: list[Ints]) -> Ints:
    return np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)


def _ranges(starts: Ints, lengths: Ints) -> Ints:
    """Return starts[0] … starts[0]+lengths[0]−1, starts[1] …, as one array."""
    before = np.cumsum(lengths) - lengths
    return np.asarray(np.arange(int(lengths.sum())) + np.repeat(starts - before, lengths))
