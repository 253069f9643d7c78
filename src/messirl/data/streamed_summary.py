"""Statistics of a streamed set of trajectories that a fit needs, gathered in one pass, locally or in parallel.

    counts   f_ζ of every trajectory, (n, d), in memory up to a limit, else in a temporary file; a cluster keeps those
             that its workers have counted
    kinds    how often each kind of choice was made (choices.py), for the prior policy and for pooling
    first    how many trajectories begin in each state

Everything but the counts has the size of the MDP, however many trajectories there are.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from messirl._types import Floats, Ints
from messirl.data.choices import Choices, choice_keys, choice_mass, kinds_of
from messirl.data.distributed_table import DistributedTableBuilder
from messirl.data.feature_counts import Tail, counts_and_tail
from messirl.data.mdp import MDP
from messirl.data.spill import TableBuilder
from messirl.data.streamed_trajectories import Chunk, Rows, StreamedTrajectories
from messirl.parallel import run_ahead

AHEAD = 8  # parts read while the results of earlier ones wait to be added


@dataclass(frozen=True, eq=False)
class ChoiceCounts:
    """Kinds of choices by their sorted keys, and how often each was made; by action if `recorded`, else next state."""

    recorded: bool
    keys: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    counts: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @classmethod
    def from_keys(cls, keys: Ints, *, recorded: bool) -> ChoiceCounts:
        """Return the kinds of choices with these keys, which may repeat."""
        return cls(recorded, *np.unique(keys, return_counts=True))

    def __add__(self, other: ChoiceCounts) -> ChoiceCounts:
        merged, at = np.unique(np.concatenate([self.keys, other.keys]), return_inverse=True)
        often = np.zeros(merged.size, dtype=np.int64)
        often[at[: self.keys.size]] = self.counts
        often[at[self.keys.size :]] += other.counts
        return replace(self, keys=merged, counts=often)

    def choices(self, mdp: MDP) -> Choices:
        """Return the kinds as choices without trajectories; how often each was made is `counts`."""
        none = np.zeros(0, dtype=np.int64)
        return Choices(none, none, *kinds_of(mdp, self.keys, recorded=self.recorded), None)


@dataclass(frozen=True, eq=False)
class StreamedStatistics:
    """Result of one pass over n trajectories.

    own : the kinds of choices, by action where there are actions, else by next state
    moved : the kinds by next state where there are actions; None if not requested
    first : (S,) how many trajectories begin in each state
    made, mass : the number of all choices, and the sum of their discounted mass (`choice_mass`)
    counts : (n, d) feature counts, an array or in a file (spill.py); None if not requested
    tail : of the trajectory with the largest γ^T, if that is large
    """

    size: int
    own: ChoiceCounts
    moved: ChoiceCounts | None
    first: Ints
    made: int
    mass: float
    counts: Any
    tail: Tail | None = None

    def __add__(self, other: StreamedStatistics) -> StreamedStatistics:
        """Return the result for both sets, without feature counts."""
        moved = None if self.moved is None or other.moved is None else self.moved + other.moved
        tails = [tail for tail in (self.tail, other.tail) if tail is not None]
        return StreamedStatistics(
            self.size + other.size,
            self.own + other.own,
            moved,
            self.first + other.first,
            self.made + other.made,
            self.mass + other.mass,
            None,
            max(tails, key=lambda tail: tail.weight, default=None),
        )

    def kinds(self, *, recorded: bool) -> ChoiceCounts:
        """Return the kinds by action, or by next state."""
        found = self.own if recorded == self.own.recorded else self.moved
        assert found is not None, "kinds by next state were not requested"
        return found


def gather_statistics(
    mdp: MDP,
    streamed: StreamedTrajectories,
    *,
    counted: bool = False,
    moved: bool = False,
    name: str = "unlabelled",
) -> StreamedStatistics:
    """Return the result of a pass over the set, which checks every trajectory; it is cached.

    counted : include feature counts
    moved : include kinds by next state where there are actions
    name : the name of the set in errors
    """
    kept: dict[str, StreamedStatistics] = streamed.memo(mdp, "gathered", dict)
    last = kept.get("last")
    lacks_counts = counted and (last is None or last.counts is None)
    lacks_moves = moved and streamed.with_actions and (last is None or last.moved is None)
    if last is None or lacks_counts or lacks_moves:
        room = _room_for(mdp, streamed) if lacks_counts else None
        moved = streamed.with_actions and (moved or (last is not None and last.moved is not None))
        found = _gathered(PassSettings(mdp, streamed.with_actions, moved, room is not None, name), streamed, room)
        if last is not None and room is None:
            found = replace(found, counts=last.counts)
        kept["last"] = last = found
    return last


def _room_for(mdp: MDP, streamed: StreamedTrajectories) -> TableBuilder | DistributedTableBuilder:
    if hasattr(streamed.executor, "keep") and len(streamed.parts()) > 1:
        return DistributedTableBuilder(len(streamed), mdp.n_features, streamed.executor)
    return TableBuilder(len(streamed), mdp.n_features)


def _gathered(
    look: PassSettings, streamed: StreamedTrajectories, room: TableBuilder | DistributedTableBuilder | None
) -> StreamedStatistics:
    found = look.nothing()
    for one in gather_pieces(look, streamed):
        if room is not None:
            room.add(one.counts, one.size)
        found = found + one
    if found.tail is not None:
        found.tail.warn(f" of {look.name}", stacklevel=6)
    return replace(found, counts=None if room is None else room.table())


@dataclass(frozen=True, eq=False)
class PassSettings:
    """Settings of a pass: kinds by action and, if `moved`, by next state; feature counts, if `counted`."""

    mdp: MDP
    recorded: bool
    moved: bool
    counted: bool
    name: str

    def nothing(self) -> StreamedStatistics:
        """Return the result for no trajectories."""
        by_move = ChoiceCounts(recorded=False) if self.moved else None
        return StreamedStatistics(
            0, ChoiceCounts(self.recorded), by_move, np.zeros(self.mdp.n_states, dtype=np.int64), 0, 0.0, None
        )

    def at(self, chunk: Chunk) -> StreamedStatistics:
        """Return the result for the trajectories of a chunk, which are checked first."""
        chunk.check(self.mdp, self.name, start=True)
        mdp, some = self.mdp, chunk.trajectories
        by_move = ChoiceCounts.from_keys(choice_keys(mdp, some, recorded=False), recorded=False) if self.moved else None
        counts, tail = counts_and_tail(mdp, some, f" of {self.name}", chunk.called) if self.counted else (None, None)
        return StreamedStatistics(
            len(some),
            ChoiceCounts.from_keys(choice_keys(mdp, some), recorded=self.recorded),
            by_move,
            np.bincount(some.first, minlength=mdp.n_states),
            int((some.lengths - 1).sum()),
            float(choice_mass(mdp, some).sum()),
            counts,
            tail,
        )


def gather_pieces(look: PassSettings, streamed: StreamedTrajectories) -> Iterator[StreamedStatistics]:
    """Yield the results of consecutive trajectories, in order; by the executor of the set, if it has one."""
    parts = streamed.parts() if streamed.executor is not None else []
    if len(parts) < 2:
        yield from map(look.at, streamed.whole(look.mdp))
        return
    base, before = streamed.base(), None
    for found in _found_in(parts, PartPass(look, base), streamed.executor):
        head = found.head
        if head is None:
            continue
        if before is not None and before.names[0] == head.names[0]:
            head = Rows.joined([before, head.as_continuation()])
        elif before is not None:
            yield look.at(streamed.chunk(look.mdp, before, base))
        if found.tail is None:  # the part is one trajectory, which may continue
            before = head
            continue
        yield look.at(streamed.chunk(look.mdp, head, base))
        yield found.between
        before = found.tail
    if before is not None:
        yield look.at(streamed.chunk(look.mdp, before, base))


def _found_in(parts: list[StreamedTrajectories], look: PartPass, executor: Any) -> Iterator[PartStatistics]:
    """Yield the result of each part; counts stay where the executor keeps them."""
    if not look.look.counted or not hasattr(executor, "keep"):
        yield from run_ahead(look, parts, executor, AHEAD)
        return
    kept = [executor.keep(look, part) for part in parts]
    light = [executor.submit(_without_counts, None, on=one) for one in kept]
    counts = [executor.keep(_counts, None, on=one) for one in kept]
    for future, there in zip(light, counts, strict=True):
        found = future.result()
        yield replace(found, between=replace(found.between, counts=there))


def _counts(_: None, part: PartStatistics) -> Floats:
    counts: Floats = part.between.counts
    return counts


def _without_counts(_: None, part: PartStatistics) -> PartStatistics:
    return replace(part, between=replace(part.between, counts=None))


@dataclass(frozen=True, eq=False)
class PartStatistics:
    """Result for some files: of whole trajectories, and the rows of the first and last one, which may be incomplete.

    head : None if there are no rows
    tail : None if all rows are of one trajectory
    """

    head: Rows | None
    between: StreamedStatistics
    tail: Rows | None


@dataclass(frozen=True, eq=False)
class PartPass:
    """A pass over some files of a set whose steps begin with `base`."""

    look: PassSettings
    base: int

    def __call__(self, part: StreamedTrajectories) -> PartStatistics:
        """Return the result for one part."""
        mdp, head, last = self.look.mdp, None, None
        between = [replace(self.look.nothing(), counts=np.zeros((0, mdp.n_features)) if self.look.counted else None)]
        for rows in part.rows(mdp):
            between += self._at(part, last)
            head, last = (head, rows) if head is not None else rows.cut(1)
        tail = None
        if last is not None and len(last.names):
            last, tail = last.cut(-1)
            between += self._at(part, last)
        counts = np.concatenate([one.counts for one in between]) if self.look.counted else None
        return PartStatistics(head, replace(functools.reduce(operator.add, between), counts=counts), tail)

    def _at(self, part: StreamedTrajectories, rows: Rows | None) -> list[StreamedStatistics]:
        if rows is None or not len(rows.names):
            return []
        return [self.look.at(part.chunk(self.look.mdp, rows, self.base))]


def trajectories_with_choices(
    mdp: MDP, streamed: StreamedTrajectories, keys: Ints, *, recorded: bool
) -> Iterator[tuple[str, int]]:
    """Yield the trajectories that made choices of these kinds, and the steps; a second pass, for error messages."""
    for chunk in streamed.checked(mdp):
        some = chunk.trajectories
        at = np.flatnonzero(np.isin(choice_keys(mdp, some, recorded=recorded), keys))
        for entry in np.flatnonzero(some.leaves)[at].tolist():
            i, t = some.locate(entry)
            yield chunk.called(i), t + chunk.base
