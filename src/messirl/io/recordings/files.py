"""Recordings from NumPy archives (.npz) and from tables (Parquet or CSV)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from messirl._npz import BROKEN, Archive, short_message
from messirl._text import count_noun
from messirl._types import Array
from messirl.data.errors import InputError
from messirl.io.recordings.recording import Recording
from messirl.io.tables.columns import as_integers, flag_column
from messirl.io.tables.error_collector import ErrorCollector
from messirl.io.tables.step_order import Order, read_order
from messirl.io.tables.table import Table, load_table

MAGIC = b"\x93NUMPY"  # first bytes of a file with a single array
EXACT = 2.0**53  # floats below it hold every whole number
OWN = ("trajectory_id", "step", "action", "reward", "terminated")  # columns stored in a recording itself


def recordings_from_numpy(source: str | PathLike[str] | Mapping[str, Any]) -> list[Recording]:
    """Read recordings from concatenated arrays in an .npz file or a dict.

    observations : (Σ (T_i + 1), k) or (Σ (T_i + 1),)
    actions : (Σ T_i,) or (Σ T_i, m);  rewards : likewise (Σ T_i,), optional
    lengths : (n,) the number T_i + 1 of observations of each recording; without it there is one recording
    terminated, truncated : bool (n,), optional: False;  ids : (n,), optional: 0, 1, …
    """
    if isinstance(source, Mapping):
        return _cut("arrays", {name: _array(name, value) for name, value in source.items()})
    where = fspath(source)
    try:
        with open(where, "rb") as file:
            if file.read(len(MAGIC)) == MAGIC:
                raise InputError(where, "it contains a single array", "save several named arrays with numpy.savez")
            return _cut(where, Archive(file))
    except FileNotFoundError:
        raise InputError(where, "does not exist", "check the path") from None
    except InputError:
        raise
    except BROKEN as error:
        raise InputError(
            where, f"it is not an .npz file of numbers ({short_message(error)})", "save one with numpy.savez"
        ) from None


def recordings_from_table(path: str | PathLike[str]) -> list[Recording]:
    """Read recordings from a table, .parquet or .csv, one row per observation, in any order.

    trajectory_id, step : steps count 0, 1, … in every trajectory, or 1, 2, … in every trajectory
    o_* : the observation, in the order of the columns
    action, or a_* : the action taken there, empty in the last row of a trajectory
    reward : optional, empty in the last row;  terminated : optional bool, in the last row or the one before

    Interpretations (another delimiter, decimal commas, steps from 1, rows out of order) raise a UserWarning.
    """
    return _from_table(path)[0]


def recordings_with_columns(path: str | PathLike[str]) -> tuple[list[Recording], dict[str, Array]]:
    """Read recordings from a table, and its further columns, which have one value per trajectory."""
    found, table, order = _from_table(path)
    first = np.minimum.reduceat(order.rows, order.offsets[:-1])  # the first row of each trajectory in the file
    named = np.empty(table.n_rows, dtype=np.int64)
    named[order.rows] = np.repeat(first, np.diff(order.offsets))
    columns = {}
    for name in table.names:
        if name in OWN or name.startswith(("o_", "a_")):
            continue
        values = table.column(name).array()
        wrong = np.flatnonzero([a != b and not (a != a and b != b) for a, b in zip(values, values[named], strict=True)])
        if wrong.size:
            what = f"{name} changes within a trajectory"
            raise table.error(what, "give one value for all of its rows", int(wrong[0]))
        columns[name] = values[first]
    return found, columns


def _from_table(path: str | PathLike[str]) -> tuple[list[Recording], Table, Order]:
    where, table = fspath(path), _table(Path(path))
    names = table.names
    seen = [name for name in names if name.startswith("o_")]
    moves = ["action"] if "action" in names else [name for name in names if name.startswith("a_")]
    for wanted in ("trajectory_id", "step", *(["o_*"] if not seen else []), *(["action"] if not moves else [])):
        if wanted not in names:
            raise InputError(where, f"there is no column {wanted}", f"the columns are {', '.join(names)}")
    if not table.n_rows:
        raise InputError(where, "it has no rows", "give at least one observation")
    faults = ErrorCollector()
    order = read_order(faults, table)
    assert order is not None, "faults raise an error"
    taken = [_column(table, name, order.rows, ~order.ends) for name in moves]
    arrays = {
        "observations": np.column_stack([_column(table, name, order.rows) for name in seen]),
        "actions": taken[0] if len(taken) == 1 else np.column_stack(taken),
        "lengths": np.diff(order.offsets),
        "ids": np.asarray(order.ids.array()),
    }
    if "reward" in names:
        arrays["rewards"] = _column(table, "reward", order.rows, ~order.ends)
    if "terminated" in names:
        ended = flag_column(faults, table, "terminated")[order.rows]
        arrays["terminated"] = _terminated(faults, table, order, ended)
    for note in (*table.notes, *faults.notes):
        warnings.warn(note, UserWarning, stacklevel=3)
    return [replace(one, columns=tuple(seen)) for one in _cut(where, arrays)], table, order


def _terminated(faults: ErrorCollector, table: Table, order: Order, ended: Array) -> Array:
    """Return whether each trajectory ended, (n,), by its last row or the row before, as Gymnasium's loop records it."""
    last = np.flatnonzero(order.ends)
    early = ended & ~np.repeat(ended[last], np.diff(order.offsets))
    before = np.where(np.diff(order.offsets) > 1, early[last - 1], False)
    early[last[before] - 1] = False
    if early.any():
        row = int(order.rows[int(np.argmax(early))])
        raise table.error("terminated is True, but the trajectory goes on", "mark its last row alone", row)
    if before.any():
        said = "terminated is True at the action that ended a trajectory, and counts for its last row"
        faults.notes.append(f"{table.where}: {said}")
    return np.asarray(ended[last] | before)


def _cut(where: str, arrays: Mapping[str, Array]) -> list[Recording]:
    """Split concatenated arrays into recordings."""
    known = {"observations", "actions", "rewards", "lengths", "terminated", "truncated", "ids"}
    for name in ("observations", "actions"):
        if name not in arrays:
            raise InputError(
                where, f"there is no array {name!r}", f"the arrays are {', '.join(sorted(arrays)) or 'none'}"
            )
    if set(arrays) - known:
        odd = sorted(set(arrays) - known)[0]
        raise InputError(where, f"unknown array {odd!r}", f"allowed are {', '.join(sorted(known))}")
    for name, values in arrays.items():
        if values.ndim == 0:
            raise InputError(where, f"{name} is the single value {values}", "give an array")
    observations, actions = arrays["observations"], arrays["actions"]
    lengths = arrays.get("lengths", np.array([len(observations)]))
    n = len(lengths)
    if lengths.dtype.kind not in "iu" or lengths.ndim != 1 or (lengths < 1).any() or lengths.sum() != len(observations):
        raise InputError(where, f"lengths are {lengths}", f"give whole numbers >= 1 that sum to {len(observations)}")
    for name in ("actions", "rewards"):
        if name in arrays and len(arrays[name]) != len(observations) - n:
            what = f"{count_noun(len(arrays[name]), name[:-1])} in {count_noun(n, 'recording')}"
            raise InputError(where, what, f"give one per step, {len(observations) - n} in all")
    endings = []
    for name in ("terminated", "truncated"):
        flag = arrays.get(name, np.zeros(n, dtype=bool))
        if flag.dtype != np.bool_ or flag.shape != (n,):
            raise InputError(where, f"{name} is {flag.dtype} of shape {flag.shape}", f"give {n} bools")
        endings.append(flag.tolist())
    ids = _ids(where, arrays.get("ids", np.arange(n)), n)
    stops = np.cumsum(lengths)
    found = []
    spans = (stops - lengths).tolist(), stops.tolist()
    for i, (lo, hi, ended, cut, name) in enumerate(zip(*spans, *endings, ids, strict=True)):
        steps = slice(lo - i, hi - i - 1)
        rewards = arrays["rewards"][steps] if "rewards" in arrays else None
        found.append(Recording(observations[lo:hi], actions[steps], ended, cut, rewards, name))
    return found


def _array(name: str, value: Any) -> Array:
    try:
        return np.asarray(value)
    except ValueError:
        raise InputError("arrays", f"{name} has rows of different lengths", "give rows of one length") from None


def _ids(where: str, given: Array, n: int) -> list[Any]:
    """Return the n ids of the recordings; raise InputError if two recordings have the same."""
    if given.ndim != 1:
        raise InputError(where, f"ids have shape {given.shape}", f"give one per recording, of shape ({n},)")
    ids: list[Any] = given.tolist()
    if len(ids) != n:
        raise InputError(where, f"{count_noun(len(ids), 'id')} for {count_noun(n, 'recording')}", "give one each")
    seen: dict[Any, int] = {}
    for i, name in enumerate(ids):
        if name != name:
            raise InputError(where, f"ids[{i}] is NaN", "give every recording an id, or leave out ids")
        if name in seen:
            what = f"ids[{seen[name]}] and ids[{i}] are both {name!r}"
            raise InputError(where, what, "give every recording an id of its own, or leave out ids")
        seen[name] = i
    return ids


def _table(path: Path) -> Table:
    if path.suffix not in (".parquet", ".csv"):
        raise InputError(str(path), f"its name ends in {path.suffix!r}", "give a .parquet or .csv file")
    if not path.is_file():
        raise InputError(str(path), "does not exist", "check the path")
    return load_table(path)


def _column(table: Table, name: str, order: Array, filled: Array | None = None) -> Array:
    """Return a column in order, without empty cells; with `filled`, exactly those entries must be filled."""
    column = table.column(name)
    if name == "action":
        column = as_integers(column)
    null = column.null[order]
    wanted = np.ones(null.size, dtype=bool) if filled is None else filled
    wrong = np.flatnonzero(null == wanted)
    if wrong.size:
        row = int(order[wrong[0]])
        if wanted[wrong[0]]:
            raise table.error(f"{name} is empty", "fill it in", row)
        raise table.error(f"{name} is given where its trajectory ends", "leave it empty there", row)
    values = np.asarray(column.values[order][wanted])
    if name == "action" and values.dtype.kind == "f" and (np.abs(values) < EXACT).all() and not (values % 1).any():
        values = values.astype(np.int64)  # pandas makes a column of floats of whole numbers with one missing
    return values
