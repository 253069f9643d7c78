"""Courses: the places of a trip one after the other, with what lies between them, cut where a trip ends."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np

from messirl._types import Flags, Ints
from messirl.io.positions.gap_filling import Ways
from messirl.io.positions.segmentation import Points
from messirl.io.positions.spatial_cells import Places


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

    @property
    def offsets(self) -> Ints:
        """Trip i has the states offsets[i] : offsets[i + 1]."""
        return np.append(np.flatnonzero(np.append(True, ~self.goes_on))[: self.trip.size], self.trip.size)

    @property
    def first_rows(self) -> Ints:
        """The first row of each trip; the row before, if it begins with a place that was filled in."""
        return np.asarray(np.maximum.accumulate(self.row)[self.offsets[:-1]])

    def take(self, kept: Flags) -> Courses:
        """Some of the states; trips keep their numbers."""
        return replace(self, trip=self.trip[kept], state=self.state[kept], row=self.row[kept])

    def cut(self, after: Flags | bool = False) -> Courses:
        """Trips that end where `after` (M − 1,) says so, too, numbered from 0 on."""
        return replace(self, trip=np.cumsum(np.append(True, ~self.goes_on | after))[: self.trip.size] - 1)


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


def drop(
    made: Courses, n_rows: int, least: int, *, goals: bool = False, ends: Collection[int] | None = None
) -> tuple[Courses, dict[str, int], int]:
    """The trips that can be used, how many others are dropped, by the reason, and how many rows are in what is kept.

    n_rows : how many rows there were
    least : states of a trip
    goals : trips end where they first come to their last place; those that left it again are dropped
    ends : places in one of which a trip must end; None: anywhere
    """
    if goals:
        last = made.state[made.offsets[1:] - 1][made.trip]
        made = made.take(
            np.append(True, ~(made.goes_on & (made.state[1:] == last[1:]) & (made.state[:-1] == last[1:])))
        )
    offsets = made.offsets
    length, last = np.diff(offsets), made.state[offsets[1:] - 1]
    reasons = {f"of fewer than {least} states": length < least}
    if goals:
        reasons["through their goal before the end"] = np.bincount(made.trip, made.state == last[made.trip]) > 1
    if ends is not None:
        reasons["cut before a terminal place"] = ~np.isin(last, list(ends))
    bad, dropped = np.zeros(length.size, dtype=bool), dict[str, int]()
    for reason, wrong in reasons.items():
        dropped[reason] = int((wrong & ~bad).sum())
        bad |= wrong
    rows = np.diff(np.append(made.first_rows, n_rows))
    return made.take(~bad[made.trip]).cut(), dropped, int(rows[~bad].sum())
