"""Several files of a folder replaced at once: a reader finds all of the old ones or all of the new ones.

The new files are written into a hidden folder inside, which is then renamed to REPLACING in one step: from that moment
on they count as the content of the folder, and `current` says so. Then they are linked into their places, and the
hidden folder is removed. If the process is killed before the renaming the old files stay, after it the new ones count;
the next replacement tidies up. Files that are not named stay as they are.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Collection, Mapping
from pathlib import Path

REPLACING = ".messirl-replacing"
HIDDEN = ".messirl-part-"  # beginning of the names of folders in which files are prepared


def current(folder: Path) -> Path:
    """Where the files of a folder are: in it, or in the complete set that was about to replace them."""
    return folder / REPLACING if (folder / REPLACING).is_dir() else folder


def replace_files(folder: Path, files: Mapping[str, bytes], known: Collection[str]) -> None:
    """Write all files; those of `known` that are not among them are removed."""
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
    """Put the files of REPLACING, if it is there, into their places."""
    new = folder / REPLACING
    if not new.is_dir():
        return
    names = [path.name for path in new.iterdir()]
    ready = _hidden(folder)
    ready.mkdir()
    for name in names:
        try:
            os.link(new / name, ready / name)
        except OSError:  # the file system has no links
            shutil.copyfile(new / name, ready / name)
        os.replace(ready / name, folder / name)
    for name in set(known) - set(names):
        (folder / name).unlink(missing_ok=True)
    os.replace(new, _hidden(folder))
