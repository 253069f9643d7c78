"""The folders of the command line: what each holds, by a key; a page can name nothing else, and no file leaves them."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from messirl.app.lab.requests import Refused

PROBLEM, RESULTS, FIT = "problem", "results", "fit"
MARKS = {  # files of which one tells what a folder holds
    RESULTS: ("results.parquet", "highway.parquet", "gridworld.parquet", "pit.parquet"),
    FIT: ("model.npz",),
    PROBLEM: ("problem.json",),
}
LARGEST = 100_000_000  # bytes of the files of one folder
LISTED = 200  # folders inside a given one that are looked at
LETTERS = 90  # of a folder's name in its key and title


@dataclass(frozen=True)
class Place:
    """A folder that may be opened.

    key : what pages call it; title : its name; kind : what it holds
    path : where it is; root : the folder of the command line that it must not leave
    """

    key: str
    title: str
    kind: str
    path: Path
    root: Path


def found_in(given: list[Path], *, strict: bool = True) -> dict[str, Place]:
    """Everything that can be opened: the given folders and, one level down, those in them; by key.

    strict : whether a folder that holds nothing of use, or is not there, is an error
    """
    out: dict[str, Place] = {}
    for path in given:
        if not path.is_dir():
            if not strict:
                continue
            raise ValueError(f"{path} is no folder: give a problem folder, or one that messirl fit or reproduce wrote")
        root = path.resolve()
        inside = sorted(child for child in root.iterdir() if child.is_dir())[:LISTED]
        here = [place for place in [root, *inside] if _kind(place) and _within(place, root)]
        if not here and strict:
            raise ValueError(
                f"{path} holds no problem, fit or results, nor does a folder in it: messirl check says why"
            )
        for place in here:
            kind = _kind(place) or ""
            title = _plain(place.name if place == root else f"{root.name}/{place.name}")
            key, n = f"{kind}:{title}", 1
            while key in out:
                n += 1
                key = f"{kind}:{title} ({n})"
            out[key] = Place(key, title, kind, place, root)
    return out


def opened(places: dict[str, Place], key: str, kind: str) -> Path:
    """The folder of a key, after making sure that no file in it is a link to elsewhere, or too large."""
    place = places.get(key)
    if place is None or place.kind != kind:
        raise Refused(f"there is no folder {key[:60]!r} of this kind: only those of the command line can be opened")
    if not place.path.is_dir():
        raise Refused(f"{place.title} is no longer there: put the folder back, or start messirl lab with another")
    if not _within(place.path, place.root):
        raise Refused(f"{place.title} is now a link out of its folder, and is not followed")
    size = 0
    for file in place.path.iterdir():
        if not _within(file, place.root):
            raise Refused(f"{place.title}: {file.name} is a link out of its folder, and is not followed")
        size += file.stat().st_size if file.is_file() else 0
    if size > LARGEST:
        raise Refused(f"{place.title} holds {size / 1e6:.0f} MB, and this page opens up to {LARGEST / 1e6:.0f} MB")
    return place.path


def stamp(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """What changes when a file of a folder does: names, times and sizes."""
    found = ((file.name, file.stat()) for file in folder.iterdir() if file.is_file())
    return tuple(sorted((name, told.st_mtime_ns, told.st_size) for name, told in found))


def _kind(folder: Path) -> str | None:
    with contextlib.suppress(PermissionError):  # what cannot be read holds nothing for us
        for kind, names in MARKS.items():
            if any((folder / name).is_file() for name in names):
                return kind
    return None


def _plain(name: str) -> str:
    """A folder's name as it can be shown and sent: no line breaks, no stray bytes, not longer than a request takes."""
    text = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in name)
    return text if len(text) <= LETTERS else text[: LETTERS // 2] + "…" + text[1 - LETTERS // 2 :]


def _within(path: Path, root: Path) -> bool:
    try:
        return path.resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError):  # a link to nowhere, or to itself
        return False
