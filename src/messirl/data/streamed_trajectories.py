"""Trajectories that stay in Parquet files, read in chunks of whole trajectories.

The table has the columns trajectory_id, step, state and, where known, action, which is empty in the last row of a
trajectory. Rows are sorted by trajectory and step: the rows of a trajectory are contiguous, in one file or over
several, and its steps count 0, 1, 2, … (or 1, 2, 3, … in all of them).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, TypeVar

import numpy as np

from messirl._checks import check_integer
from messirl._types import Array, Flags, Ints
from messirl.data.errors import InputError
from messirl.data.mdp import MDP
from messirl.data.parquet import BATCH, Batch, Source, is_dataset
from messirl.data.parquet_columns import Labels, begins_of, known_cells, names_of, whole_cells
from messirl.data.trajectories import Trajectories
from messirl.data.validation import Fault, start_faults, trajectory_faults

CHUNK = 1_000_000  # rows of a chunk
PART = 2**22  # bytes of files that one task of an executor reads
TOGETHER = "keep the rows of a trajectory together and sorted by step; files are read in the order of their names"

T = TypeVar("T")


class StreamedTrajectories:
    """A set of trajectories in Parquet files, which need not fit in memory; `fit` takes it as `unlabelled`.

    Parameters
    ----------
    source : path, list of paths or pyarrow.dataset.Dataset
        A Parquet file, a folder with all .parquet files below it, sorted by name, a list of them in order, or a
        dataset. Columns: trajectory_id, step, state and, where known, action; sorted by trajectory and step.
    state_labels, action_labels : list, optional
        Labels of state and action 0, 1, … in the columns. None: these numbers or, where a column holds text, the
        names of the MDP.
    chunk_rows : int
        About how many rows are held at once; a longer trajectory is held as a whole.
    executor : optional
        Reads several files at once: processes of this machine or a cluster (see execution.run), with the files under
        the same paths. It returns sums and, where needed, counts, 8·d bytes per trajectory; a cluster keeps its counts
        and sums them in place. None: this process reads.

    Attributes
    ----------
    source : Source
        The files.
    with_actions : bool
        Whether there is a column of actions.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from messirl import MDP, Trajectories
    >>> from messirl.io import StreamedTrajectories, write_trajectories
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> write_trajectories(Trajectories.from_lists([[0, 1, 0], [1, 0]]), folder / "walks.parquet")
    >>> walks = StreamedTrajectories(folder)
    >>> len(walks)
    2
    >>> mdp = MDP([[[0, 1]], [[1, 0]]], features=[[0.0], [1.0]], discount=0.9)
    >>> [len(chunk) for chunk in walks.chunks(mdp)]
    [2]
    """

    goals = None  # a streamed set never has goals

    def __init__(
        self,
        source: Any,
        *,
        state_labels: Sequence[Any] | None = None,
        action_labels: Sequence[Any] | None = None,
        chunk_rows: int = CHUNK,
        executor: Any = None,
    ) -> None:
        self.source = source if isinstance(source, Source) else Source(source)
        self.state_labels, self.action_labels = state_labels, action_labels
        self.chunk_rows = check_integer("chunk_rows", chunk_rows)
        self.executor = executor
        self.with_actions = self.source.has("action")
        self._size: int | None = None
        self._kept: tuple[Any, dict[Any, Any]] = (None, {})

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": (None, {}), "executor": None}  # another process reads the files itself

    def __repr__(self) -> str:
        size = "" if self._size is None else f"{self._size} "
        return f"StreamedTrajectories({size}from {self.source!r}, {'with' if self.with_actions else 'without'} actions)"

    def __len__(self) -> int:
        """Return the number of trajectories; the first call reads the ids, and checks that each is contiguous."""
        if self._size is None:
            self._size = _counted(self.source)
        return self._size

    def names(self) -> Names:
        """Read the ids of the trajectories, in order."""
        return Names(list(_all_names(self.source)))

    def chunks(self, mdp: MDP) -> Iterator[Trajectories]:
        """Yield the trajectories in order, checked against the MDP, as many at once as `chunk_rows` allows."""
        return (chunk.trajectories for chunk in self.checked(mdp))

    def checked(self, mdp: MDP, name: str = "trajectories", *, start: bool = False) -> Iterator[Chunk]:
        """Yield the chunks with their labels; an InputError names file, row and trajectory at the first fault.

        start : require that trajectories begin where the MDP's own start is positive
        """
        for chunk in self.whole(mdp):
            chunk.check(mdp, name, start=start)
            yield chunk

    def memo(self, mdp: MDP, key: Any, build: Callable[[], T]) -> T:
        """Return `build()` for an MDP, whatever its prior policy; cached for one MDP at a time."""
        token = mdp.memo("itself", object)
        if self._kept[0] is not token:
            self._kept = (token, {})
        found = self._kept[1]
        if key not in found:
            found[key] = build()
        made: T = found[key]
        return made

    def parts(self) -> list[StreamedTrajectories]:
        """Return sets of some of the files each, in order; the first and last trajectory of one may be incomplete."""
        found = []
        for source in self.source.parts(PART):
            found.append(copy(self))
            found[-1].source, found[-1].executor, found[-1]._kept = source, None, (None, {})
        return found

    def base(self) -> int:
        """Return the number of the first step in the table, 0 or 1."""
        steps = (whole_cells(batch, "step") for batch in self.source.batches(["step"], 1))
        return next((int(step[0]) for step in steps if step.size), 0)

    def whole(self, mdp: MDP) -> Iterator[Chunk]:
        """Yield the chunks, with steps and actions checked, but not against the MDP."""
        base = None
        for rows in self.rows(mdp):
            base = int(rows.step[0]) if base is None else base
            yield self.chunk(mdp, rows, base)

    def chunk(self, mdp: MDP, rows: Rows, base: int) -> Chunk:
        """Return the trajectories of some rows, after checking steps and actions."""
        return Chunk.of(rows, base, *self._labels(mdp))

    def rows(self, mdp: MDP) -> Iterator[Rows]:
        """Yield the rows of whole trajectories, about `chunk_rows` of them at once."""
        states, actions = self._labels(mdp)
        held: list[Rows] = []
        before = None
        columns = ["trajectory_id", "step", "state", *(["action"] if self.with_actions else [])]
        for batch in self.source.batches(columns, min(BATCH, self.chunk_rows)):
            rows, before = _rows(batch, states, actions, before)
            held.append(rows)
            if sum(some.begins.size for some in held) < self.chunk_rows or sum(some.names.size for some in held) < 2:
                continue
            some, last = Rows.joined(held).cut(-1)  # the last one may continue
            yield some
            held = [last]
        if sum(some.begins.size for some in held):
            yield Rows.joined(held)

    def _labels(self, mdp: MDP) -> tuple[Labels, Labels | None]:
        actions = Labels.of("action", self.action_labels, mdp.action_names) if self.with_actions else None
        return Labels.of("state", self.state_labels, mdp.state_names), actions


def is_streamed(given: Any) -> bool:
    """Return True for trajectories in files: a streamed set, a path, a list of paths or a dataset."""
    if given is None or isinstance(given, Trajectories):
        return False
    if isinstance(given, list | tuple):
        return len(given) > 0 and all(isinstance(one, str | PathLike) for one in given)
    return isinstance(given, str | PathLike | StreamedTrajectories) or is_dataset(given)


def as_streamed(given: Any) -> Any:
    """Return a path, a list of paths or a dataset as a streamed set; anything else unchanged."""
    return StreamedTrajectories(given) if is_streamed(given) and not isinstance(given, StreamedTrajectories) else given


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of the table, (N,) each, and the names of the trajectories that begin among them.

    places : where the rows are: (number of the first row, its file, its number there), one per batch
    """

    begins: Flags
    step: Ints
    state: Ints
    action: Ints | None
    names: Array
    places: list[tuple[int, str, int]]

    @classmethod
    def joined(cls, parts: list[Rows]) -> Rows:
        """Concatenate rows."""
        if len(parts) == 1:
            return parts[0]
        places, done = [], 0
        for part in parts:
            places += [(at + done, file, row) for at, file, row in part.places]
            done += part.begins.size
        actions = [part.action for part in parts if part.action is not None]
        begins, step, state = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("begins", "step", "state")
        )
        action = np.concatenate(actions) if actions else None
        return cls(begins, step, state, action, np.concatenate([part.names for part in parts]), places)

    def cut(self, n: int) -> tuple[Rows, Rows]:
        """Split after the first n trajectories, or before the last −n; the first row must begin a trajectory."""
        at = int(np.append(np.flatnonzero(self.begins), self.begins.size)[n if n >= 0 else n - 1])
        return self.some(0, at), self.some(at, self.begins.size)

    def as_continuation(self) -> Rows:
        """Return the same rows, of which the first continues the trajectory before."""
        return replace(self, begins=np.append(False, self.begins[1:]), names=self.names[1:])

    def some(self, lo: int, hi: int) -> Rows:
        """Return the rows from lo up to hi."""
        skipped = int(self.begins[:lo].sum())
        names = self.names[skipped : skipped + int(self.begins[lo:hi].sum())]
        ends = [at for at, _, _ in self.places[1:]] + [self.begins.size]
        places = [
            (max(at - lo, 0), file, row + max(lo - at, 0))
            for (at, file, row), end in zip(self.places, ends, strict=True)
            if end > lo and at < hi
        ]
        action = None if self.action is None else self.action[lo:hi]
        return Rows(self.begins[lo:hi], self.step[lo:hi], self.state[lo:hi], action, names, places)

    def place(self, at: int) -> tuple[str, int]:
        """Return the file of a row, and its number there."""
        start, file, row = next(place for place in reversed(self.places) if place[0] <= at)
        return file, row + at - start

    def error(self, at: int, what: str, remedy: str) -> InputError:
        """Return an error about one of the rows."""
        file, row = self.place(at)
        return InputError(file, what, remedy, row)


NOTHING = int(np.iinfo(np.int64).min)  # marks an empty cell in the column of actions


def _rows(batch: Batch, states: Labels, actions: Labels | None, before: Any) -> tuple[Rows, Any]:
    """Return the rows of a batch, and the id in its last one; `before` is the id in the row before."""
    begins, last = begins_of(batch, before)
    action = None if actions is None else known_cells(batch, "action", actions, empty=NOTHING)
    step, state = whole_cells(batch, "step"), known_cells(batch, "state", states)
    return Rows(begins, step, state, action, names_of(batch, begins), [(0, batch.file, batch.row)]), last


@dataclass(frozen=True, eq=False)
class Chunk:
    """Whole trajectories with their places in the files and their labels.

    base : the number of the first step in the table, 0 or 1
    """

    trajectories: Trajectories
    rows: Rows
    base: int
    states: Labels
    actions: Labels | None

    @classmethod
    def of(cls, rows: Rows, base: int, states: Labels, actions: Labels | None) -> Chunk:
        """Return a chunk of these rows, after checking that steps are consecutive and every step has its action."""
        offsets = np.append(np.flatnonzero(rows.begins), rows.begins.size)
        base = 1 if base == 1 else 0
        wanted = np.arange(rows.begins.size) - np.repeat(offsets[:-1] - base, np.diff(offsets))
        wrong = rows.step != wanted
        if wrong.any():
            raise _out_of_step(rows, int(np.argmax(wrong)))
        taken = None
        if rows.action is not None:
            last = np.append(rows.begins[1:], True)
            taken = rows.action[~last]
            _check_actions(rows, last)
        return cls(Trajectories(rows.state, offsets, taken), rows, base, states, actions)

    def check(self, mdp: MDP, name: str, *, start: bool) -> None:
        """Raise an InputError at the first fault against an MDP; `start` as for `StreamedTrajectories.checked`."""
        fault = next(trajectory_faults(mdp, self.trajectories), None)
        if fault is None and start:
            fault = next(start_faults(mdp, self.trajectories), None)
        if fault is not None:
            raise self.error(fault, name)

    def called(self, i: int) -> str:
        """Return the name of a trajectory in messages: its id, and where it begins."""
        file, row = self.rows.place(int(self.trajectories.offsets[i]))
        return f"{self.rows.names[i]} ({file}, row {row})"

    def error(self, fault: Fault, name: str) -> InputError:
        """Return the error for a fault, with the file, the row and the name of the trajectory."""
        what = fault.what(self.states.show, str if self.actions is None else self.actions.show)
        if fault.trajectory is None:
            return self.rows.error(0, f"{name} {what}", fault.remedy)
        i, step, offsets = fault.trajectory, fault.step, self.trajectories.offsets
        place = fault.place(str(self.rows.names[i]), None if step is None else step + self.base)
        at = int(offsets[i + 1] - 1 if step is None else offsets[i] + step)
        return self.rows.error(at, f"{name}: {place}{what}", fault.remedy)


def _out_of_step(rows: Rows, at: int) -> InputError:
    """Return the error for a row that is not the next step of its trajectory."""
    name, step = rows.names[int(rows.begins[: at + 1].sum()) - 1], rows.step[at]
    if rows.begins[at]:
        what = f"trajectory {name} begins with step {step}"
        return rows.error(at, what, f"count the steps of all trajectories from 0, or all from 1, and {TOGETHER}")
    if step == rows.step[at - 1]:
        return rows.error(at, f"trajectory {name} has step {step} twice", "keep one row per step")
    what = f"step {step} of trajectory {name} follows step {rows.step[at - 1]}"
    return rows.error(at, what, f"count steps 0, 1, 2, … without a gap, and {TOGETHER}")


def _check_actions(rows: Rows, last: Flags) -> None:
    assert rows.action is not None
    wrong = (rows.action == NOTHING) != last
    if wrong.any():
        at = int(np.argmax(wrong))
        name = rows.names[int(rows.begins[: at + 1].sum()) - 1]
        if last[at]:
            raise rows.error(at, f"an action follows the last state of trajectory {name}", "leave it empty there")
        remedy = "give one action per step, or drop the column"
        raise rows.error(at, f"action is empty at step {rows.step[at]} of trajectory {name}", remedy)


def _counted(source: Source) -> int:
    """Return the number of trajectories; raise an InputError if the rows of one are not contiguous."""
    size, last = 0, None
    for codes in _all_codes(source):
        rising = (codes[1:] > codes[:-1]).all() and (last is None or codes.size == 0 or codes[0] > last)
        if not rising:  # then every id must be compared with all others
            return _counted_in_any_order(source)
        size, last = size + codes.size, codes[-1] if codes.size else last
    return size


def _counted_in_any_order(source: Source) -> int:
    every = np.concatenate(list(_all_codes(source)))
    every.sort()
    again = np.unique(every[1:][every[1:] == every[:-1]])
    if again.size:
        _refuse_again(source, again)
    return every.size


def _all_codes(source: Source) -> Iterator[Ints]:
    """Yield an integer code for each trajectory, batch by batch."""
    return map(_codes, _all_names(source))


def _all_names(source: Source) -> Iterator[Array]:
    """Yield the ids of the trajectories, batch by batch."""
    before = None
    for batch in source.batches(["trajectory_id"]):
        begins, before = begins_of(batch, before)
        yield names_of(batch, begins)


class Names(Sequence[str]):
    """Names of trajectories, held as Arrow's compact text."""

    def __init__(self, parts: list[Array]) -> None:
        import pyarrow as pa

        self._cells = pa.chunked_array([pa.array(part).cast(pa.string()) for part in parts], pa.string())

    def __len__(self) -> int:
        return len(self._cells)

    def __getitem__(self, i: Any) -> Any:
        return self._cells[i].to_pylist() if isinstance(i, slice) else self._cells[int(i)].as_py()

    def __iter__(self) -> Iterator[str]:
        return (name for chunk in self._cells.iterchunks() for name in chunk.to_pylist())


def _codes(names: Array) -> Ints:
    """Return an integer code for each name, the same for equal ones."""
    if names.dtype.kind == "i":
        return names
    return np.fromiter(map(hash, names.tolist()), dtype=np.int64, count=names.size)


def _refuse_again(source: Source, suspects: Ints) -> None:
    """Raise an error at the first trajectory that begins a second time; only those with these codes may."""
    seen: dict[Any, str] = {}
    before = None
    for batch in source.batches(["trajectory_id"]):
        begins, before = begins_of(batch, before)
        names, rows = names_of(batch, begins), np.flatnonzero(begins)
        for k in np.flatnonzero(np.isin(_codes(names), suspects)).tolist():
            name, at = names[k], int(rows[k])
            if name in seen:
                what = f"trajectory {name} begins again, after {seen[name]}"
                raise batch.error(what, f"{TOGETHER}; give every trajectory an id of its own", at)
            seen[name] = f"{batch.file}, row {batch.row + at}"
