"""Recordings from NumPy's .npz files and from tables (Parquet or CSV)."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from messirl.io.errors import InputError
from messirl.io.recordings import Array, Recording


def recordings_from_numpy(source: str | PathLike[str] | Mapping[str, Any]) -> list[Recording]:
    """Recordings that lie one after the other in arrays, in an .npz file or a dict.

    observations : (Σ (T_i + 1), k) or (Σ (T_i + 1),)
    actions : (Σ T_i,) or (Σ T_i, m);  rewards : likewise (Σ T_i,), optional
    lengths : (n,) the number T_i + 1 of observations of each; without it there is one recording
    terminated, truncated : bool (n,), optional: False;  ids : (n,), optional: 0, 1, …
    """
    if isinstance(source, Mapping):
        return _cut("arrays", {name: np.asarray(value) for name, value in source.items()})
    where = fspath(source)
    try:
        loaded = np.load(where, allow_pickle=False)
        arrays = {name: loaded[name] for name in loaded.files} if hasattr(loaded, "files") else None
    except FileNotFoundError:
        raise InputError(where, "there is no such file", "check the path") from None
    except (ValueError, OSError, EOFError, BadZipFile):
        raise InputError(where, "it is no .npz file of numbers", "save one with numpy.savez") from None
    if arrays is None:
        raise InputError(where, "it holds one array", "save several, by name, with numpy.savez")
    loaded.close()
    return _cut(where, arrays)


def recordings_from_table(path: str | PathLike[str]) -> list[Recording]:
    """Recordings from a table, .parquet or .csv, one row an observation.

    trajectory_id, step : rows are sorted by them; steps count 0, 1, … in each trajectory
    o_* : the observation, in the order of the columns
    action, or a_* : the action taken there, empty in the last row of a trajectory
    reward : optional, empty in the last row;  terminated : optional bool, of the last row
    """
    where, table = fspath(path), _table(Path(path))
    names = table.column_names
    seen = [name for name in names if name.startswith("o_")]
    moves = ["action"] if "action" in names else [name for name in names if name.startswith("a_")]
    for wanted in ("trajectory_id", "step", *(["o_*"] if not seen else []), *(["action"] if not moves else [])):
        if wanted not in names:
            raise InputError(where, f"there is no column {wanted}", f"it has {', '.join(names)}")
    ids = np.array(table["trajectory_id"].to_pylist())
    step = _column(where, table, "step")
    if not ids.size:
        raise InputError(where, "it has no rows", "give at least one observation")
    first = np.append(True, ids[1:] != ids[:-1])
    expected = np.arange(ids.size) - np.maximum.accumulate(np.where(first, np.arange(ids.size), 0))
    wrong = np.flatnonzero(step != expected)
    if wrong.size:
        row = int(wrong[0])
        raise InputError(
            where, f"step is {step[row]}, not {expected[row]}", "sort the rows, count steps from 0", row + 2
        )
    begins = np.flatnonzero(first)
    if np.unique(ids[begins]).size != begins.size:
        raise InputError(where, "the rows of a trajectory_id do not lie together", "sort the rows")
    leaves = np.append(~first[1:], False)
    ends = np.append(begins[1:], ids.size) - 1
    arrays = {
        "observations": np.column_stack([_column(where, table, name) for name in seen]),
        "actions": _one_or_more([_column(where, table, name, leaves) for name in moves]),
        "lengths": np.diff(np.append(begins, ids.size)),
        "ids": ids[begins],
    }
    if "reward" in names:
        arrays["rewards"] = _column(where, table, "reward", leaves)
    if "terminated" in names:
        arrays["terminated"] = _column(where, table, "terminated")[ends]
    return _cut(where, arrays)


def _cut(where: str, arrays: Mapping[str, Array]) -> list[Recording]:
    """One recording after the other out of the arrays."""
    known = {"observations", "actions", "rewards", "lengths", "terminated", "truncated", "ids"}
    for name in ("observations", "actions"):
        if name not in arrays:
            raise InputError(where, f"there is no array {name!r}", f"it has {', '.join(sorted(arrays)) or 'none'}")
    if set(arrays) - known:
        odd = sorted(set(arrays) - known)[0]
        raise InputError(where, f"{odd!r} is not known here", f"give {', '.join(sorted(known))}")
    observations, actions = arrays["observations"], arrays["actions"]
    lengths = arrays.get("lengths", np.array([len(observations)]))
    n = len(lengths)
    if lengths.dtype.kind not in "iu" or lengths.ndim != 1 or (lengths < 1).any() or lengths.sum() != len(observations):
        raise InputError(where, f"lengths are {lengths}", f"give whole numbers >= 1 that sum to {len(observations)}")
    for name in ("actions", "rewards"):
        if name in arrays and len(arrays[name]) != len(observations) - n:
            raise InputError(
                where,
                f"{len(arrays[name])} {name} in {n} recordings",
                f"give one a step, {len(observations) - n} in all",
            )
    flags = {}
    for name in ("terminated", "truncated"):
        flags[name] = arrays.get(name, np.zeros(n, dtype=bool))
        if flags[name].dtype != np.bool_ or flags[name].shape != (n,):
            raise InputError(where, f"{name} is {flags[name].dtype} of shape {flags[name].shape}", f"give {n} bools")
    ids = arrays.get("ids", np.arange(n)).tolist()
    if len(ids) != n:
        raise InputError(where, f"{len(ids)} ids for {n} recordings", "give one each")
    stop = np.cumsum(lengths)
    found = []
    for i, (hi, size) in enumerate(zip(stop.tolist(), lengths.tolist(), strict=True)):
        lo, steps = hi - size, slice(hi - size - i, hi - i - 1)
        rewards = arrays["rewards"][steps] if "rewards" in arrays else None
        ended, cut = flags["terminated"][i], flags["truncated"][i]
        found.append(Recording(observations[lo:hi], actions[steps], bool(ended), bool(cut), rewards, ids[i]))
    return found


def _table(path: Path) -> Any:
    from pyarrow import ArrowException, csv, parquet

    readers = {".parquet": parquet.read_table, ".csv": csv.read_csv}
    if path.suffix not in readers:
        raise InputError(str(path), f"its name ends in {path.suffix!r}", "give a .parquet or .csv file")
    if not path.is_file():
        raise InputError(str(path), "there is no such file", "check the path")
    try:
        return readers[path.suffix](path)
    except ArrowException as error:
        raise InputError(str(path), "it cannot be read", str(error).splitlines()[0]) from None


def _column(where: str, table: Any, name: str, rows: Array | None = None) -> Array:
    """A column without gaps; with `rows`, those of them that it must fill, and no others."""
    column = table[name].combine_chunks()
    full = column.is_valid().to_numpy(zero_copy_only=False)
    wanted = np.ones(len(full), dtype=bool) if rows is None else rows
    wrong = np.flatnonzero(full != wanted)
    if wrong.size:
        row = int(wrong[0])
        if wanted[row]:
            raise InputError(where, f"{name} is empty", "fill it in", row + 2)
        raise InputError(where, f"{name} is given where its trajectory ends", "leave it empty there", row + 2)
    return np.asarray(column.drop_null().to_numpy(zero_copy_only=False))


def _one_or_more(columns: list[Array]) -> Array:
    return columns[0] if len(columns) == 1 else np.column_stack(columns)
