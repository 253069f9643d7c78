"""Atomic writing of files: completely or not at all."""

from __future__ import annotations

import ctypes
import errno
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE, EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux


@contextmanager
def atomic_path(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path in the same folder, renamed to `target` at the end; on an error the old file stays.

    The temporary name is unique. It is an error if `target` is a device or a folder, or if its folder does not exist.
    """
    place = Path(target)
    _check_no_other(place)
    if not place.parent.exists():
        raise FileNotFoundError(errno.ENOENT, "the folder to write a file to does not exist", str(place.parent))
    part = place.with_name(f".{place.name}.{uuid.uuid4().hex}")
    try:
        yield part
        os.replace(part, place)
    except OSError as error:
        if error.filename is not None and os.fsdecode(error.filename) == str(part):
            error.filename = str(place)  # the name that the caller gave
        raise
    finally:
        part.unlink(missing_ok=True)


def exchange_folders(one: Path, other: Path) -> None:
    """Exchange the names of two folders: atomically on Linux, else in three steps during which `other` is absent."""
    if _exchanged(one, other):
        return
    aside = one.with_name(f".{one.name}.{uuid.uuid4().hex}")
    os.rename(other, aside)
    try:
        os.rename(one, other)
    except BaseException:
        os.rename(aside, other)
        raise
    os.rename(aside, one)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two names atomically, and return whether the system can."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):  # not Linux, or an old one
        return False
    return bool(rename(HERE, os.fsencode(one), HERE, os.fsencode(other), EXCHANGE) == 0)


def flush_folder(folder: Path) -> None:
    """Flush the files of a folder, and their directory entries, to the disk."""
    for place in (*folder.rglob("*"), folder, folder.parent):
        if os.access(place, os.R_OK) and not place.is_symlink() and (place.is_file() or os.name == "posix"):
            number = os.open(place, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
            try:
                os.fsync(number)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems without fsync
                    raise
            finally:
                os.close(number)


def check_writable(target: str | os.PathLike[str]) -> None:
    """Raise an OSError if no file can be written there, even after creating its folders; write nothing.

    For paths that are written after long computations. A disk that fills up in the meantime is not detected.
    """
    place = Path(target)
    _check_no_other(place)
    folder = place.parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "a folder is needed here, but there is a file", str(folder))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def _check_no_other(place: Path) -> None:
    """Raise an OSError if the path exists and is not a regular file."""
    if place.is_dir() or not place.name:
        raise IsADirectoryError(errno.EISDIR, "cannot write a file: a folder has this name", str(place))
    if place.exists() and not place.is_file():
        raise OSError(errno.EINVAL, "not a regular file: refusing to replace a device or the like", str(place))
