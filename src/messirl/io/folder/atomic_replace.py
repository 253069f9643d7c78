"""Atomic replacement of several files of a folder: a reader finds either all old or all new files.

The new files are written into a hidden subfolder, which is then renamed to REPLACING in one step. From that moment they
are the content of the folder, and `current` returns their location. Then they are linked into their places, and the
hidden folder is removed. If the process is killed before the renaming, the old files stay; after it, the new ones are
valid. The next replacement removes leftovers. All other files stay unchanged.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Collection, Mapping
from pathlib import Path

REPLACING = ".messirl-replacing"
HIDDEN = ".messirl-part-"  # prefix of folders in which files are prepared


def current(folder: Path) -> Path:
    """Return the location of the valid files: the folder, or the complete set that was about to replace them."""
    return folder / REPLACING if (folder / REPLACING).is_dir() else folder


def replace_files(folder: Path, files: Mapping[str, bytes], known: Collection[str]) -> None:
    """Write all files, and remove those of `known` that are not among them."""
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    _finish(folder, known)
    new = _hidden(folder)
    try:
        new.mkdir()
        for name, content in files.items():
            (new / name).write_bytes(content)
        os.replace(new, folder / REPLACING)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        if made:
            folder.rmdir()
        raise
    _finish(folder, known)
    for left in folder.glob(f"{HIDDEN}*"):
        shutil.rmtree(left, ignore_errors=True)


def _hidden(folder: Path) -> Path:
    return folder / f"{HIDDEN}{uuid.uuid4().hex}"


def _finish(folder: Path, known: Collection[str]) -> None:
    """Move the files of REPLACING, if it exists, into their places."""
    new = folder / REPLACING
    if not new.is_dir():
        return
    names = [path.name for path in new.iterdir()]
    ready = _hidden(folder)
    ready.mkdir()
    for name in names:
        try:
            os.link(new / name, ready / name)
        except OSError:  # the file system does not support links
            shutil.copyfile(new / name, ready / name)
        os.replace(ready / name, folder / name)
    for name in set(known) - set(names):
        (folder / name).unlink(missing_ok=True)
    os.replace(new, _hidden(folder))
