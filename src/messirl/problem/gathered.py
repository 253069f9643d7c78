"""What a fit needs to know of a streamed set of trajectories, gathered in one pass over it.

    counts   f_ζ of every trajectory, (n, d), in memory up to a limit, else in a temporary file
    kinds    how often each kind of choice was made (choices.py), for the base policy and for pooling
    first    how many trajectories begin in each state

Everything but the counts is as large as the MDP, however many trajectories there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from messirl._types import Floats, Ints
from messirl.problem.choices import Choices, choice_keys, choice_mass, kinds_of
from messirl.problem.counts import Tail, counted
from messirl.problem.mdp import MDP
from messirl.problem.room import Room
from messirl.problem.streamed import Chunk, StreamedTrajectories


@dataclass(frozen=True, eq=False)
class Kinds:
    """Kinds of choices by their sorted keys, and how often each was made; `recorded` says whether by action."""

    recorded: bool
    keys: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    often: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def and_also(self, keys: Ints) -> Kinds:
        """These, and one more choice for each of the keys."""
        new, number = np.unique(keys, return_counts=True)
        merged, at = np.unique(np.concatenate([self.keys, new]), return_inverse=True)
        often = np.zeros(merged.size, dtype=np.int64)
        often[at[: self.keys.size]] = self.often
        often[at[self.keys.size :]] += number
        return replace(self, keys=merged, often=often)

    def choices(self, mdp: MDP) -> Choices:
        """The kinds as choices, which know of no single trajectory; how often each was made is `often`."""
        none = np.zeros(0, dtype=np.int64)
        return Choices(none, none, *kinds_of(mdp, self.keys, recorded=self.recorded), None)


@dataclass(frozen=True, eq=False)
class Gathered:
    """What one pass over n trajectories found.

    own : the kinds of choices, by action where there are actions, else by next state
    moved : by next state where there are actions; None if not asked for
    first : (S,) how many begin in each state
    made, mass : the number of choices of all, and the sum of their discounted mass (`choice_mass`)
    counts : (n, d) feature counts, an array or in a file (room.py); None if not asked for
    """

    size: int
    own: Kinds
    moved: Kinds | None
    first: Ints
    made: int
    mass: float
    counts: Any

    def kinds(self, *, recorded: bool) -> Kinds:
        """The kinds by action, or by next state."""
        found = self.own if recorded == self.own.recorded else self.moved
        assert found is not None, "they were asked for"
        return found


def gathered(
    mdp: MDP,
    streamed: StreamedTrajectories,
    *,
    counted: bool = False,
    moved: bool = False,
    name: str = "unlabelled",
) -> Gathered:
    """What a pass over the set finds, in which every trajectory is checked; kept for the next who asks.

    counted : whether feature counts are wanted
    moved : whether kinds by next state are wanted where there are actions
    name : what errors call the set
    """
    kept: dict[str, Gathered] = streamed.memo(mdp, "gathered", dict)
    last = kept.get("last")
    lacks_counts = counted and (last is None or last.counts is None)
    lacks_moves = moved and streamed.with_actions and (last is None or last.moved is None)
    if last is None or lacks_counts or lacks_moves:
        room = Room(len(streamed), mdp.n_features) if lacks_counts else None
        moved = moved or (last is not None and last.moved is not None)
        found = _gathered(mdp, streamed, room, name, moved=moved)
        if last is not None and room is None:
            found = replace(found, counts=last.counts)
        kept["last"] = last = found
    return last


def _gathered(mdp: MDP, streamed: StreamedTrajectories, room: Room | None, name: str, *, moved: bool) -> Gathered:
    own = Kinds(streamed.with_actions)
    by_move = Kinds(recorded=False) if moved and own.recorded else None
    first, size, made, mass = np.zeros(mdp.n_states, dtype=np.int64), 0, 0, 0.0
    tail: Tail | None = None
    for chunk in streamed.checked(mdp, name, start=True):
        some = chunk.trajectories
        own = own.and_also(choice_keys(mdp, some))
        if by_move is not None:
            by_move = by_move.and_also(choice_keys(mdp, some, recorded=False))
        first += np.bincount(some.first, minlength=mdp.n_states)
        size, made = size + len(some), made + int((some.lengths - 1).sum())
        mass += float(choice_mass(mdp, some).sum())
        if room is not None:
            counts, cut = _counts_of(mdp, chunk, name)
            room.add(counts)
            tail = cut if tail is None or (cut is not None and cut.weight > tail.weight) else tail
    if tail is not None:
        tail.warn(f" of {name}", stacklevel=6)
    return Gathered(size, own, by_move, first, made, mass, None if room is None else room.table())


def _counts_of(mdp: MDP, chunk: Chunk, name: str) -> tuple[Floats, Tail | None]:
    return counted(mdp, chunk.trajectories, f" of {name}", chunk.called)


def makers(mdp: MDP, streamed: StreamedTrajectories, keys: Ints, *, recorded: bool) -> Iterator[tuple[str, int]]:
    """Which trajectories made choices of these kinds, and at which step; a second pass, for the sake of a message."""
    for chunk in streamed.checked(mdp):
        some = chunk.trajectories
        at = np.flatnonzero(np.isin(choice_keys(mdp, some, recorded=recorded), keys))
        for entry in np.flatnonzero(some.leaves)[at].tolist():
            i, t = some.locate(entry)
            yield chunk.called(i), t + chunk.base
