"""The folder of a command's results: what this command wrote there, and what earlier ones left.

Nothing is ever deleted. The summary of a command (fit.json, select.json, diagnosis.json) lists under `files` what
belongs to it, each with its checksum, so that a model or a page of another command is not taken for its own; what stays
of earlier commands is named in the terminal.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from messirl._files import beside
from messirl.cli.common import as_json, note

SUMMARIES = ("fit.json", "select.json", "diagnosis.json")
OTHERS = ("model.npz", "report.html", "policy.parquet", "diagnosis.html", "diagnosis.csv")
SHOWN = 6  # names of files in a remark


@dataclass
class Results:
    """A folder, and what was in it before this command."""

    folder: Path
    before: dict[str, tuple[int, int]] = field(default_factory=dict)

    def write_summary(self, name: str, summary: dict[str, Any]) -> None:
        """Write the summary with the files that this command wrote so far."""
        summary["files"] = {file: _checksum(self.folder / file) for file in self.written() if file != name}
        with beside(self.folder / name) as part:
            part.write_text(as_json(summary) + "\n", encoding="utf-8")

    def written(self) -> list[str]:
        """What this command wrote."""
        return [name for name, state in _there(self.folder).items() if self.before.get(name) != state]

    def remark(self) -> None:
        """Name what earlier commands left in the folder."""
        left = [name for name, state in _there(self.folder).items() if self.before.get(name) == state]
        if left:
            more = f" and {len(left) - SHOWN} more" if len(left) > SHOWN else ""
            verb = "is" if len(left) == 1 else "are"
            note(f"{', '.join(left[:SHOWN])}{more} in {self.folder} {verb} of an earlier command, not of this one")


def begin(folder: Path, writes: Sequence[str], *, draws: bool = False) -> Results:
    """Make the folder of the results; refuse to write over files there that are not results of a command of ours.

    writes : names of the files that will be written
    draws : whether pictures will be written as well, to a folder `figures` in it
    """
    figures, ours = folder / "figures", any(_is_summary(folder / name) for name in SUMMARIES)
    if draws and figures.exists() and not figures.is_dir():
        raise ValueError(f"{figures} is no folder, but figures are to be written there: give another folder with --out")
    if draws and not ours and not _is_model(folder / "model.npz"):
        others = sorted([*figures.glob("*.png"), *figures.glob("*.svg")])
        if others:
            raise ValueError(
                f"{folder} holds figures/{others[0].name}, which is no result of messirl: give another folder with "
                "--out, or move it away"
            )
    if folder.is_dir() and not ours:
        for name in writes:
            place = folder / name
            if place.exists() and not _is_model(place):
                raise ValueError(
                    f"{folder} holds {name}, which is no result of messirl: give another folder with --out, or move "
                    "it away"
                )
    folder.mkdir(parents=True, exist_ok=True)
    return Results(folder, _there(folder))


def out_of_date(folder: Path) -> list[str]:
    """The summaries in a folder that are of another model than the one there."""
    model, found = folder / "model.npz", []
    for name in SUMMARIES:
        if model.is_file() and _is_summary(folder / name):
            files = json.loads((folder / name).read_text(encoding="utf-8")).get("files", {})
            if "model.npz" in files and files["model.npz"] != _checksum(model):
                found.append(name)
    return found


def _there(folder: Path) -> dict[str, tuple[int, int]]:
    """The files of ours in a folder, each with what changes when it is written."""
    places = [folder / name for name in (*SUMMARIES, *OTHERS)]
    places += sorted([*folder.glob("figures/*.png"), *folder.glob("figures/*.svg")])
    stats = {place: place.stat() for place in places if place.is_file()}
    return {place.relative_to(folder).as_posix(): (at.st_ino, at.st_mtime_ns) for place, at in stats.items()}


def _checksum(place: Path) -> str:
    with place.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def _is_summary(place: Path) -> bool:
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and str(found.get("command", "")).startswith("messirl ")


def _is_model(place: Path) -> bool:
    """Whether it is a model: what a fit leaves that was interrupted before its summary."""
    try:
        with zipfile.ZipFile(place) as archive:
            return "description.npy" in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False
