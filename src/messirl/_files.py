"""Files that are written completely or not at all."""

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
def beside(target: str | os.PathLike[str]) -> Iterator[Path]:
    """A path to write to, in the same folder, renamed to `target` at the end; on an error the old file stays.

    No other process or thread uses its name. A device or a folder in the place of `target` is an error, and so is a
    folder that is not there.
    """
    place = Path(target)
    _check_no_other(place)
    if not place.parent.exists():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder to write a file to", str(place.parent))
    part = place.with_name(f".{place.name}.{uuid.uuid4().hex}")
    try:
        yield part
        os.replace(part, place)
    except OSError as error:
        if error.filename is not None and os.fsdecode(error.filename) == str(part):
            error.filename = str(place)  # the name that somebody gave
        raise
    finally:
        part.unlink(missing_ok=True)


def exchange(one: Path, other: Path) -> None:
    """Exchange the names of two folders: in one step on Linux, elsewhere in three, with no `other` in between."""
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
    """Whether the system could do it in one step."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):  # not Linux, or an old one
        return False
    return bool(rename(HERE, os.fsencode(one), HERE, os.fsencode(other), EXCHANGE) == 0)


def settle(folder: Path) -> None:
    """Have the system write the files of a folder to the disk, and their names."""
    for place in (*folder.rglob("*"), folder, folder.parent):
        if os.access(place, os.R_OK) and not place.is_symlink() and (place.is_file() or os.name == "posix"):
            number = os.open(place, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
            try:
                os.fsync(number)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems that cannot
                    raise
            finally:
                os.close(number)


def check_writable(target: str | os.PathLike[str]) -> None:
    """OSError if no file can be written there, even if the folders that it needs are made first; nothing is written.

    For paths that are written to after long work. A disk that fills up meanwhile is not foreseen.
    """
    place = Path(target)
    _check_no_other(place)
    folder = place.parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "a file stands where a folder is needed", str(folder))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def _check_no_other(place: Path) -> None:
    """OSError if something that is no file is in the place of one."""
    if place.is_dir() or not place.name:
        raise IsADirectoryError(errno.EISDIR, "a folder stands where a file is to be written", str(place))
    if place.exists() and not place.is_file():
        raise OSError(errno.EINVAL, "no file, but a device or the like, which would be replaced", str(place))
