"""Folders of the command line, by key: a page can open nothing else, and links out of them are not followed."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from messirl.app.lab.requests import RequestError

PROBLEM, RESULTS, FIT = "problem", "results", "fit"
MARKS = {  # files that identify the kind of a folder
    RESULTS: ("results.parquet", "highway.parquet", "gridworld.parquet", "pit.parquet"),
    FIT: ("model.npz",),
    PROBLEM: ("problem.json",),
}
LARGEST = 100_000_000  # maximum bytes of the files of one folder
LISTED = 200  # maximum number of subfolders that are examined
LETTERS = 90  # maximum characters of a folder's name in its key and title


@dataclass(frozen=True)
class FolderEntry:
    """A folder that may be opened.

    key : identifier in requests; title : its name; kind : its contents
    path : its location; root : the folder of the command line that contains it
    """

    key: str
    title: str
    kind: str
    path: Path
    root: Path


def find_folders(given: list[Path], *, strict: bool = True) -> dict[str, FolderEntry]:
    """Return everything that can be opened, by key: the given folders and their direct subfolders.

    strict : whether a missing folder, or one without usable contents, is an error
    """
    out: dict[str, FolderEntry] = {}
    for path in given:
        if not path.is_dir():
            if not strict:
                continue
            raise ValueError(
                f"{path} is not a folder: give a problem folder, or one that messirl fit or reproduce wrote"
            )
        root = path.resolve()
        inside = sorted(child for child in root.iterdir() if child.is_dir())[:LISTED]
        here = [place for place in [root, *inside] if _kind(place) and _within(place, root)]
        if not here and strict:
            raise ValueError(
                f"{path} and its subfolders contain no problem, fit or results: messirl check lists faults of a problem"
            )
        for place in here:
            kind = _kind(place) or ""
            title = _plain(place.name if place == root else f"{root.name}/{place.name}")
            key, n = f"{kind}:{title}", 1
            while key in out:
                n += 1
                key = f"{kind}:{title} ({n})"
            out[key] = FolderEntry(key, title, kind, place, root)
    return out


def open_folder(places: dict[str, FolderEntry], key: str, kind: str) -> Path:
    """Return the folder of a key, after a check of its size and for links out of it."""
    place = places.get(key)
    if place is None or place.kind != kind:
        raise RequestError(f"unknown folder {key[:60]!r}: only folders of the command line can be opened")
    if not place.path.is_dir():
        raise RequestError(
            f"{place.title} does not exist any more: restore the folder, or start messirl lab with another"
        )
    if not _within(place.path, place.root):
        raise RequestError(f"{place.title} is now a link out of its folder, which is not followed")
    size = 0
    for file in place.path.iterdir():
        if not _within(file, place.root):
            raise RequestError(f"{place.title}: {file.name} is a link out of its folder, which is not followed")
        size += file.stat().st_size if file.is_file() else 0
    if size > LARGEST:
        raise RequestError(f"{place.title} has {size / 1e6:.0f} MB: this page opens at most {LARGEST / 1e6:.0f} MB")
    return place.path


def stamp(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Return names, modification times and sizes of the files in a folder, to detect changes."""
    found = ((file.name, file.stat()) for file in folder.iterdir() if file.is_file())
    return tuple(sorted((name, stat.st_mtime_ns, stat.st_size) for name, stat in found))


def _kind(folder: Path) -> str | None:
    with contextlib.suppress(PermissionError):  # an unreadable folder has no usable contents
        for kind, names in MARKS.items():
            if any((folder / name).is_file() for name in names):
                return kind
    return None


def _plain(name: str) -> str:
    """Return a folder's name for display and requests: printable characters only, and shortened if too long."""
    text = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in name)
    return text if len(text) <= LETTERS else text[: LETTERS // 2] + "…" + text[1 - LETTERS // 2 :]


def _within(path: Path, root: Path) -> bool:
    try:
        return path.resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError):  # a broken or circular link
        return False
