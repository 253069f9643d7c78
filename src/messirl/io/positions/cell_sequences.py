"""Cell sequences of trajectories: repeated cells removed, gaps filled, cut and filtered."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np

from messirl._types import Flags, Ints
from messirl.io.positions.gap_filling import PathFinder
from messirl.io.positions.segmentation import Points
from messirl.io.positions.spatial_cells import CellMap


@dataclass(frozen=True, eq=False)
class CellSequences:
    """Cell sequences of all trajectories, concatenated: M entries.

    trajectory : index of the trajectory of each entry, increasing;  state : its cell
    row : the first row behind each entry, −1 if it was filled in
    said : counts for the report: jumps, filled cells, …
    """

    trajectory: Ints
    state: Ints
    row: Ints
    said: dict[str, int] = field(default_factory=dict)

    @property
    def goes_on(self) -> Flags:
        """Mask of the entries, except the last, whose successor belongs to the same trajectory, (M − 1,)."""
        return np.asarray(self.trajectory[1:] == self.trajectory[:-1])

    @property
    def offsets(self) -> Ints:
        """Offsets: trajectory i consists of the entries offsets[i] : offsets[i + 1]."""
        return np.append(np.flatnonzero(np.append(True, ~self.goes_on))[: self.trajectory.size], self.trajectory.size)

    @property
    def first_rows(self) -> Ints:
        """First row of each trajectory; the preceding row if it begins with a filled cell."""
        return np.asarray(np.maximum.accumulate(self.row)[self.offsets[:-1]])

    def take(self, kept: Flags) -> CellSequences:
        """Return a subset of the entries; trajectories keep their indices."""
        return replace(self, trajectory=self.trajectory[kept], state=self.state[kept], row=self.row[kept])

    def cut(self, after: Flags | bool = False) -> CellSequences:
        """Split trajectories also after the entries flagged in `after` (M − 1,), and renumber them from 0."""
        return replace(self, trajectory=np.cumsum(np.append(True, ~self.goes_on | after))[: self.trajectory.size] - 1)


def make_cell_sequences(points: Points, state: Ints, *, stay: bool) -> CellSequences:
    """Return the cell sequences of points; without `stay`, consecutive repetitions of a cell count once."""
    made = CellSequences(points.trajectory, state, points.row)
    if stay:
        return made
    again = np.append(False, made.goes_on & (state[1:] == state[:-1]))
    return replace(made.take(~again), said={"stays": int(again.sum())})


def along_neighbours(made: CellSequences, places: CellMap, *, stay: bool, fill: bool) -> CellSequences:
    """Make successive cells neighbours: fill gaps along neighbours or, without `fill`, split trajectories at them."""
    ways = PathFinder(places)
    jump = made.goes_on & ~ways.are_neighbours(made.state[:-1], made.state[1:])
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
    place = np.arange(made.state.size) + np.cumsum(extra) - extra  # position of each entry among all
    n = int(extra.sum())
    state, row = np.full(made.state.size + n, -1, dtype=np.int64), np.full(made.state.size + n, -1, dtype=np.int64)
    state[place], row[place] = made.state, made.row
    state[state < 0] = [s for way in found for s in way or ()]
    trip = np.repeat(made.cut(lost).trajectory, extra + 1)
    return CellSequences(trip, state, row, {**said, "filled": n})


def end_at(made: CellSequences, ends: Collection[int]) -> CellSequences:
    """Split trajectories where they enter one of these cells; the rest becomes another trajectory."""
    return made.cut(np.isin(made.state[:-1], list(ends)))


def drop(
    made: CellSequences, n_rows: int, least: int, *, goals: bool = False, ends: Collection[int] | None = None
) -> tuple[CellSequences, dict[str, int], int]:
    """Return the usable trajectories, the number dropped for each reason, and the number of rows kept.

    n_rows : the number of rows before
    least : minimum number of states of a trajectory
    goals : the last cell is the goal; drop trajectories that pass through it before the end
    ends : cells in which a trajectory must end; None: anywhere
    """
    if goals:
        last = made.state[made.offsets[1:] - 1][made.trajectory]
        made = made.take(
            np.append(True, ~(made.goes_on & (made.state[1:] == last[1:]) & (made.state[:-1] == last[1:])))
        )
    offsets = made.offsets
    length, last = np.diff(offsets), made.state[offsets[1:] - 1]
    reasons = {f"of fewer than {least} states": length < least}
    if goals:
        reasons["through their goal before the end"] = (
            np.bincount(made.trajectory, made.state == last[made.trajectory]) > 1
        )
    if ends is not None:
        reasons["cut before a terminal place"] = ~np.isin(last, list(ends))
    bad, dropped = np.zeros(length.size, dtype=bool), dict[str, int]()
    for reason, wrong in reasons.items():
        dropped[reason] = int((wrong & ~bad).sum())
        bad |= wrong
    rows = np.diff(np.append(made.first_rows, n_rows))
    return made.take(~bad[made.trajectory]).cut(), dropped, int(rows[~bad].sum())
