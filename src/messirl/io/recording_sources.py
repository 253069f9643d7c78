"""Recordings from any supported source: a Minari data set, an HDF5 file, a NumPy archive, or a table."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from messirl._types import Array
from messirl.data.errors import InputError
from messirl.dynamics.transition_dataset import as_points
from messirl.io.recordings.files import recordings_from_numpy, recordings_with_columns
from messirl.io.recordings.recording import Recording


def read_recordings(source: str | PathLike[str]) -> tuple[list[Recording], dict[str, Array]]:
    """Read recordings, with points as observations and numbered actions, and columns for filters.

    source : a file .npz, .parquet, .csv or .hdf5, or minari:ID

    The columns are trajectory_id, steps, terminated, return (where there are rewards), and further columns of a table.
    """
    where = fspath(source)
    kind, colon, name = where.partition(":")
    suffix = Path(where).suffix.lower()
    columns: dict[str, Array] = {}
    if kind == "minari" and colon:
        from messirl.io.interop.minari import episodes_from_minari

        found = episodes_from_minari(name)
    elif suffix in (".hdf5", ".h5"):
        from messirl.io.interop.hdf5 import episodes_from_hdf5

        found = episodes_from_hdf5(where)
    elif suffix == ".npz":
        found = recordings_from_numpy(where)
    elif suffix in (".csv", ".parquet"):
        found, columns = recordings_with_columns(where)
    else:
        remedy = "give .npz, .parquet, .csv or .hdf5, or minari:ID; see docs/dynamics.md"
        raise InputError(where, "is not a file of recordings", remedy)
    if not found:
        raise InputError(where, "contains no recording", "give at least one")
    width = found[0].observations.shape[1] if found[0].observations.ndim == 2 else 1
    found = [_checked(where, one, width) for one in found]
    facts: dict[str, Any] = {
        "trajectory_id": np.array([i if one.id is None else one.id for i, one in enumerate(found)]),
        "steps": np.array([len(one) for one in found]),
        "terminated": np.array([one.terminated for one in found]),
        **columns,
    }
    rewards = [one.rewards for one in found if one.rewards is not None]
    if len(rewards) == len(found):
        facts["return"] = np.array([float(some.sum()) for some in rewards])
    return found, facts


def _checked(source: str, one: Recording, width: int) -> Recording:
    """Return the recording with points (T + 1, k) and integer actions (T,)."""
    where = f"{source}, recording {one.id}"
    actions = one.actions[:, 0] if one.actions.ndim == 2 and one.actions.shape[1] == 1 else one.actions
    if actions.ndim != 1 or actions.dtype.kind not in "iu":
        what = f"its actions are {actions.dtype} of shape {actions.shape}"
        raise InputError(where, what, "number them 0, 1, …, one per step")
    points = as_points(one.observations, where)
    if points.shape[1] != width:
        what = f"its observations have {points.shape[1]} numbers, those of other recordings {width}"
        raise InputError(where, what, "give observations of one length")
    return replace(one, observations=points, actions=actions)
