"""Minari's HDF5 file, read by h5py alone: groups episode_0, episode_1, … of arrays."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from messirl.io.interop.minari import episode
from messirl.io.recordings.recording import Recording
from messirl.problem.errors import InputError

FILE = "main_data.hdf5"
ARRAYS = ("observations", "actions", "rewards", "terminations", "truncations")
JPEG = (0xFF, 0xD8, 0xFF)  # how every JPEG begins


def episodes_from_hdf5(path: str | PathLike[str], *, key: str | None = None) -> list[Recording]:
    """The episodes of a file, or of the folder of a data set; `key` as in `episodes_from_minari`."""
    try:
        import h5py
    except ImportError:
        raise ImportError("this needs h5py: pip install 'messirl[hdf5]'") from None
    file = _found(Path(path))
    try:
        opened = h5py.File(file, "r")
    except OSError:
        raise InputError(str(file), "it is no HDF5 file", "give main_data.hdf5 of a Minari data set") from None
    with opened:
        numbers = sorted(int(name[8:]) for name in opened if name.startswith("episode_") and name[8:].isdigit())
        if not numbers:
            what = "it holds no group episode_0, episode_1, …"
            raise InputError(str(file), what, "give the file of a Minari data set")
        return [_read(f"{file}, episode {i}", i, opened[f"episode_{i}"], key) for i in numbers]


def _read(where: str, number: int, group: Any, key: str | None) -> Recording:
    values = {}
    for name in ARRAYS:
        if name not in group:
            raise InputError(where, f"it has no {name}", f"an episode holds {', '.join(ARRAYS)}")
        entry = group[name]
        if name == "observations" and key is not None and hasattr(entry, "keys") and key in entry:
            entry = entry[key]
        if hasattr(entry, "keys"):
            raise InputError(where, f"its {name} are a group of {', '.join(entry)}", "name one observation in key=")
        values[name] = entry[()]
    seen = values["observations"]
    if seen.dtype == np.uint8 and seen.ndim == 2 and (seen[:, :3] == JPEG).all():
        raise InputError(where, "its observations are images", "extract features from them first")
    return episode(where, number, *(values[name] for name in ARRAYS))


def _found(path: Path) -> Path:
    for file in (path, path / FILE, path / "data" / FILE):
        if file.is_file():
            return file
    raise InputError(str(path), f"there is no such file, and no {FILE} in it", "give the file or the data set's folder")
