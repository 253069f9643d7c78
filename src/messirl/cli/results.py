"""The folder of a command's results: what this command wrote there, and what earlier ones left.

Nothing is ever deleted. The summary of a command (fit.json, select.json, …) lists under
`files` what belongs to it, each with its checksum, so that a model or a page of another command is not taken for its
own. Files that remain from earlier commands are named in the terminal. What stood there before any command of ours and
is called like a result is listed under `strangers`, so that no later command writes over it.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from messirl._files import beside, check_writable
from messirl.cli.common import as_json, note, say
from messirl.cli.progress import Progress
from messirl.workflow.watch import Watcher

SUMMARIES = ("fit.json", "select.json", "diagnosis.json", "evaluate.json", "compare.json", "benchmark.json")
OTHERS = (
    *("model.npz", "report.html", "policy.parquet", "diagnosis.html", "diagnosis.csv"),
    *("compare.csv", "benchmark.csv"),
)
SHOWN = 6  # names of files in a remark


@dataclass
class Results:
    """A folder, and what a command writes into it.

    writes : names of the files
    draws : whether pictures are written as well, to a folder `figures` in it
    keep : called with the model as soon as it is fitted
    before : what was there when the work began
    strangers : names of files there that are called like results and are none of ours
    checksums : of the files that this command wrote, each found as soon as it is known to be there
    """

    folder: Path
    writes: Sequence[str]
    draws: bool = False
    keep: Callable[[Any], None] = lambda _: None
    before: dict[str, tuple[int, int]] = field(default_factory=dict)
    strangers: list[str] = field(default_factory=list)
    checksums: dict[str, str] = field(default_factory=dict)

    def begin(self) -> None:
        """Make the folder; refuse to write over files in it that are not results of a messirl command.

        Where one of the files could not be written, this is said now.
        """
        figures = self.folder / "figures"
        if self.draws and figures.exists() and not figures.is_dir():
            raise ValueError(
                f"{figures} is no folder, but figures are to be written there: give another folder with --out"
            )
        self.strangers = _strangers(self.folder)
        drawn = [name for name in self.strangers if self.draws and name.startswith("figures/")]
        foreign = [*drawn, *(name for name in self.writes if name in self.strangers)]
        if foreign:
            raise ValueError(
                f"{self.folder} holds {foreign[0]}, which is no result of messirl: "
                "give another folder with --out, or move it away"
            )
        for name in (*self.writes, *(["figures/any.png"] if self.draws else [])):
            check_writable(self.folder / name)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.before = _there(self.folder)

    @property
    def watcher(self) -> Watcher:
        """Shows in the terminal what a workflow does; the folder is made when the work begins."""
        return Watcher(say, note, Progress, self.begin, self._kept)

    def _kept(self, model: Any) -> None:
        self.keep(model)
        self._look()

    def finish(self, name: str, summary: dict[str, Any], text: str, *, json: bool) -> int:
        """Write the summary, name what earlier commands left, and print the text, or the summary as JSON."""
        self.write_summary(name, summary)
        there = {file: state for file, state in _there(self.folder).items() if file not in self.strangers}
        left = [file for file, state in there.items() if self.before.get(file) == state]
        if left:
            more = f" and {len(left) - SHOWN} more" if len(left) > SHOWN else ""
            verb = "is" if len(left) == 1 else "are"
            note(f"{', '.join(left[:SHOWN])}{more} in {self.folder} {verb} of an earlier command, not of this one")
        places = {file: self.folder / file for file in self.checksums}
        lost = [file for file, at in places.items() if not at.is_file() or _checksum(at) != self.checksums[file]]
        if lost:
            note(
                f"another command changed {', '.join(lost[:SHOWN])} in {self.folder} meanwhile, so that what is there "
                "is of both: give each its own folder with --out, and run this one again"
            )
        print(as_json(summary) if json else text)
        return 0

    def write_summary(self, name: str, summary: dict[str, Any]) -> None:
        """Write the summary with the files that this command wrote so far."""
        self._look()
        summary["files"] = dict(self.checksums)
        if self.strangers:
            summary["strangers"] = self.strangers
        with beside(self.folder / name) as part:
            part.write_text(as_json(summary) + "\n", encoding="utf-8")

    def _look(self) -> None:
        """Find the checksums of what was written since the last look."""
        for file, state in _there(self.folder).items():
            if self.before.get(file) != state and file not in (*self.checksums, *SUMMARIES):
                self.checksums[file] = _checksum(self.folder / file)


def out_of_date(folder: Path) -> list[str]:
    """The summaries in a folder that describe another model than the one there."""
    model, found = folder / "model.npz", []
    for name in SUMMARIES:
        if model.is_file():
            files = _summary(folder / name).get("files", {})
            if "model.npz" in files and files["model.npz"] != _checksum(model):
                found.append(name)
    return found


def _there(folder: Path) -> dict[str, tuple[int, int]]:
    """The result files in a folder, each with two numbers that change when it is written."""
    places = [*(folder / name for name in (*SUMMARIES, *OTHERS)), *_pictures(folder)]
    stats = {place: place.stat() for place in places if place.is_file()}
    return {place.relative_to(folder).as_posix(): (at.st_ino, at.st_mtime_ns) for place, at in stats.items()}


def _pictures(folder: Path) -> list[Path]:
    return sorted([*folder.glob("figures/*.png"), *folder.glob("figures/*.svg")])


def _checksum(place: Path) -> str:
    with place.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def _strangers(folder: Path) -> list[str]:
    """The files in a folder that are called like results and are none of ours, in the order they are named in.

    Without a summary of ours these are all but models. Summaries list those that they found; others are of a command
    that was interrupted. A name that a summary lists among its own files is ours by now.
    """
    there = {*_there(folder), *(name for name in (*SUMMARIES, *OTHERS) if (folder / name).exists())}
    found = [summary for summary in (_summary(folder / name) for name in SUMMARIES) if summary]
    if found:
        named = {name for summary in found for name in summary.get("strangers", ())}
        strange = named - {name for summary in found for name in summary.get("files", ())}
    else:
        drawn = _is_model(folder / "model.npz")  # what an interrupted fit had drawn
        strange = {name for name in there if not (drawn and name.startswith("figures/"))}
    return sorted(name for name in strange & there if not _is_model(folder / name))


def _summary(place: Path) -> dict[str, Any]:
    """What a summary of ours holds; nothing if the file is none."""
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    ours = isinstance(found, dict) and str(found.get("command", "")).startswith("messirl ")
    return found if ours else {}


def _is_model(place: Path) -> bool:
    """Whether a file is a model, which an interrupted fit leaves without a summary."""
    try:
        with zipfile.ZipFile(place) as archive:
            return "description.npy" in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False
