"""Reader of Minari's HDF5 files with h5py alone: groups episode_0, episode_1, … of arrays."""

from __future__ import annotations

import math
import re
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from messirl._memory_guard import unpacking_limit
from messirl.data.errors import InputError
from messirl.io.interop.minari import episode
from messirl.io.recordings.recording import Recording

FILE = "main_data.hdf5"
ARRAYS = ("observations", "actions", "rewards", "terminations", "truncations")
SLACK = 65_536  # bytes by which a compressed chunk may exceed its unpacked size
JPEG = (0xFF, 0xD8, 0xFF)  # first bytes of every JPEG


def episodes_from_hdf5(path: str | PathLike[str], *, key: str | None = None) -> list[Recording]:
    """Read the episodes of a file, or of the folder of a data set; `key` as in `episodes_from_minari`."""
    try:
        import h5py
    except ImportError:
        raise ImportError("this needs h5py: pip install 'messirl[hdf5]'") from None
    file = _data_file(Path(path))
    try:
        opened = h5py.File(file, "r")
    except OSError:
        raise InputError(str(file), "it is not an HDF5 file", "give main_data.hdf5 of a Minari data set") from None
    left = unpacking_limit(file.stat().st_size)
    with opened:
        try:
            numbers = sorted(int(name[8:]) for name in opened if re.fullmatch(r"episode_(0|[1-9][0-9]{0,8})", name))
        except RuntimeError as error:
            raise InputError(str(file), f"it is damaged ({error})", "write the file again") from None
        if not numbers:
            what = "it has no groups episode_0, episode_1, …"
            raise InputError(str(file), what, "give the file of a Minari data set")
        found = []
        for i in numbers:
            where = f"{file}, episode {i}"
            try:
                values = _read(where, _member(where, opened, f"episode_{i}"), key, left)
            except (OSError, RuntimeError, LookupError, AttributeError, TypeError) as error:
                raise InputError(where, f"it is damaged ({error})", "write the file again") from None
            left -= sum(array.nbytes for array in values)
            found.append(episode(where, i, *values))
        return found


def _member(where: str, group: Any, name: str) -> Any:
    """Return the member of a group, which must be in the same file."""
    link = type(group.get(name, getlink=True)).__name__
    if link != "HardLink":
        raise InputError(where, f"its {name} is an external or soft link", "copy the link's target into the file")
    return group[name]


def _read(where: str, group: Any, key: str | None, left: float) -> list[Any]:
    """Read the arrays of an episode, at most `left` bytes in all."""
    if not hasattr(group, "keys"):
        raise InputError(where, "it is not a group of arrays", f"an episode needs {', '.join(ARRAYS)}")
    values = {}
    for name in ARRAYS:
        if name not in group:
            raise InputError(where, f"it has no {name}", f"an episode needs {', '.join(ARRAYS)}")
        entry = _member(where, group, name)
        if name == "observations" and key is not None and hasattr(entry, "keys") and key in entry:
            entry = _member(where, entry, key)
        if hasattr(entry, "keys"):
            raise InputError(where, f"its {name} are a group of {', '.join(entry)}", "choose one with key=")
        if entry.shape is None or not entry.shape or entry.dtype.kind not in "biuf":
            raise InputError(where, f"its {name} are {entry.dtype} of shape {entry.shape}", "give arrays of numbers")
        if entry.external or entry.is_virtual:
            raise InputError(where, f"its {name} are stored in another file", "copy them into this file")
        left -= math.prod(entry.shape) * entry.dtype.itemsize
        if left < math.prod(entry.chunks or ()) * entry.dtype.itemsize:
            raise InputError(
                where, f"its {name} would take too much memory for a file of this size", "write the file again"
            )
        _check_chunks(where, name, entry)
        values[name] = entry[()]
    seen = values["observations"]
    if seen.dtype == np.uint8 and seen.ndim == 2 and (seen[:, :3] == JPEG).all():
        raise InputError(where, "its observations are images", "extract features from them first")
    return list(values.values())


def _check_chunks(where: str, name: str, entry: Any) -> None:
    """Reject compressed chunks that are larger than their unpacked size: they would unpack to far more."""
    if entry.chunks is None:
        return
    whole = math.prod(entry.chunks) * entry.dtype.itemsize
    for i in range(entry.id.get_num_chunks()):
        if entry.id.get_chunk_info(i).size > 2 * whole + SLACK:
            raise InputError(where, f"its {name} hold more data than declared", "write the file again")


def _data_file(path: Path) -> Path:
    for file in (path, path / FILE, path / "data" / FILE):
        if file.is_file():
            return file
    raise InputError(
        str(path), f"there is no such file, nor {FILE} in it", "give the file or the folder of the data set"
    )
