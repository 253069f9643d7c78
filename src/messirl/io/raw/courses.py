"""Courses: the places of a trip one after the other, with what lies between them, cut where a trip ends."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np

from messirl._types import Flags, Ints
from messirl.io.raw.places import Places
from messirl.io.raw.trips import Points
from messirl.io.raw.ways import Ways


@dataclass(frozen=True, eq=False)
class Courses:
    """States of trips, one after the other.

    trip : number of the trip of each state, increasing;  state : its place
    row : the first row it is made of, −1 where it was filled in
    said : how many steps jumped, places were filled in, …
    """

    trip: Ints
    state: Ints
    row: Ints
    said: dict[str, int] = field(default_factory=dict)

    @property
    def goes_on(self) -> Flags:
        """Which states but the last are followed by one of the same trip, (M − 1,)."""
        return np.asarray(self.trip[1:] == self.trip[:-1])

    def take(self, kept: Flags) -> Courses:
        """Some of the states; trips keep their numbers."""
        return replace(self, trip=self.trip[kept], state=self.state[kept], row=self.row[kept])

    def cut(self, after: Flags) -> Courses:
        """Trips that end where `after` (M − 1,) says so, numbered anew."""
        return replace(self, trip=np.cumsum(np.append(True, ~self.goes_on | after)) - 1)


def courses(points: Points, state: Ints, *, stay: bool) -> Courses:
    """The places of points; without `stay` a place that follows itself counts once."""
    made = Courses(points.trip, state, points.row)
    if stay:
        return made
    again = np.append(False, made.goes_on & (state[1:] == state[:-1]))
    return replace(made.take(~again), said={"stays": int(again.sum())})


def along_neighbours(made: Courses, places: Places, *, stay: bool, fill: bool) -> Courses:
    """Courses in which each place lies beside the one before: jumps are filled in, or (not `fill`) end a trip."""
    ways = Ways(places)
    jump = made.goes_on & ~ways.beside(made.state[:-1], made.state[1:])
    if stay:
        jump &= made.state[1:] != made.state[:-1]
    at = np.flatnonzero(jump)
    said = {**made.said, "jumps": at.size, "filled": 0}
    if not fill or not at.size:
        return replace(made.cut(jump), said=said)
    found = ways.between(made.state[at], made.state[at + 1])
    lost = np.zeros(jump.size, dtype=bool)
    lost[at] = [way is None for way in found]
    extra = np.zeros(made.state.size, dtype=np.int64)
    extra[at] = [len(way or ()) for way in found]
    place = np.arange(made.state.size) + np.cumsum(extra) - extra  # of each state among all
    n = int(extra.sum())
    state, row = np.full(made.state.size + n, -1, dtype=np.int64), np.full(made.state.size + n, -1, dtype=np.int64)
    state[place], row[place] = made.state, made.row
    state[state < 0] = [s for way in found for s in way or ()]
    trip = np.repeat(made.cut(lost).trip, extra + 1)
    return Courses(trip, state, row, {**said, "filled": n})


def end_at(made: Courses, ends: Collection[int]) -> Courses:
    """Trips that end where they enter one of these places; what follows is another trip."""
    return made.cut(np.isin(made.state[:-1], list(ends)))


def drop(made: Courses, least: int, *, goals: bool) -> tuple[Courses, dict[str, int]]:
    """Trips of at least so many states, numbered 0, 1, …, and how many are dropped, by the reason.

    goals : trips that come to their last place before the end are dropped, too
    """
    trip = np.cumsum(np.append(True, ~made.goes_on)) - 1
    length = np.bincount(trip)
    short = length < least
    dropped = {f"of fewer than {least} states": int(short.sum())}
    bad = short
    if goals:
        last = made.state[np.cumsum(length) - 1]
        early = np.bincount(trip, made.state == last[trip]) > 1
        dropped["through their goal before the end"] = int((early & ~short).sum())
        bad = short | early
    kept = made.take(~bad[trip])
    return replace(kept, trip=np.cumsum(np.append(True, ~kept.goes_on))[: kept.trip.size] - 1), dropped
