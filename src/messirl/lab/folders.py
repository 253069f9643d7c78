"""The folders of the command line: what each holds, by a key; a page can name nothing else, and no file leaves them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from messirl.lab.requests import Refused

PROBLEM, RESULTS, FIT = "problem", "results", "fit"
MARKS = {  # files of which one tells what a folder holds
    RESULTS: ("results.parquet", "highway.parquet", "gridworld.parquet", "pit.parquet"),
    FIT: ("model.npz",),
    PROBLEM: ("problem.json",),
}
LARGEST = 100_000_000  # bytes of the files of one folder
LISTED = 200  # folders inside a given one that are looked at


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


def found_in(given: list[Path]) -> dict[str, Place]:
    """Everything that can be opened: the given folders and, one level down, those in them; by key."""
    out: dict[str, Place] = {}
    for path in given:
        if not path.is_dir():
            raise ValueError(f"{path} is no folder: give a problem folder, or one that messirl fit or reproduce wrote")
        root = path.resolve()
        inside = sorted(child for child in root.iterdir() if child.is_dir())[:LISTED]
        here = [place for place in [root, *inside] if _kind(place) and _within(place, root)]
        if not here:
            raise ValueError(
                f"{path} holds no problem, fit or results, nor does a folder in it: messirl check says why"
            )
        for place in here:
            kind = _kind(place) or ""
            title = place.name if place == root else f"{root.name}/{place.name}"
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


def _kind(folder: Path) -> str | None:
    for kind, names in MARKS.items():
        if any((folder / name).is_file() for name in names):
            return kind
    return None


def _within(path: Path, root: Path) -> bool:
    try:
        return path.resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError):  # a link to nowhere, or to itself
        return False
