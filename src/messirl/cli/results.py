"""The folder of a command's results, which appears at once when they are complete.

A command writes into a folder of its own beside it, `NAME.unfinished-PROCESS`, which takes the place of the folder in
one step at the end. A process that is killed before leaves the earlier result as it was, and what it had finished where
it wrote it. The earlier result is moved to `NAME.earlier`, where one is kept; files that are no results of ours stay.

The summary of a command (fit.json, select.json, …) lists under `files` what belongs to it, each with its checksum.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from messirl._files import beside, check_writable, exchange, settle
from messirl.cli.common import as_json, note, say
from messirl.cli.progress import Progress
from messirl.workflow.watch import Watcher

SUMMARIES = ("fit.json", "select.json", "diagnosis.json", "evaluate.json", "compare.json", "benchmark.json")
EARLIER, UNFINISHED = ".earlier", ".unfinished-"


@dataclass
class Results:
    """A folder, and what a command writes into it.

    folder : where the results are when they are complete
    writes : names of the files
    draws : whether pictures are written as well, to a folder `figures`
    keep : called with the model as soon as it is fitted, and where to write
    replace : whether an earlier result there may be moved aside; else it is refused
    """

    folder: Path
    writes: Sequence[str]
    draws: bool = False
    keep: Callable[[Any, Path], None] = lambda *_: None
    replace: bool = False

    @classmethod
    def asked(cls, arguments: argparse.Namespace, *writes: str, **how: Any) -> Self:
        """The results of a command with the options of `add_results`, and a page where one is wanted."""
        page = ("report.html",) if arguments.report else ()
        replace = getattr(arguments, "force", True) or str(arguments.out) == arguments.usual_out
        return cls(arguments.out, (*writes, *page), arguments.report, replace=replace, **how)

    def __post_init__(self) -> None:
        self.whole = Path(os.path.abspath(self.folder))
        self.place = self.whole.with_name(f"{self.whole.name}{UNFINISHED}{os.getpid()}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is None or not self.place.is_dir():
            return
        if any(file.is_file() for file in self.place.rglob("*")):
            say(f"what was finished is in {self._beside(self.place)}")
        else:
            shutil.rmtree(self.place, ignore_errors=True)

    def begin(self) -> None:
        """Make the folder to write into; refuse what would replace anything but a result of ours."""
        figures = self.folder / "figures"
        if self.draws and figures.exists() and not figures.is_dir():
            raise ValueError(
                f"{figures} is no folder, but figures are to be written there: give another folder with --out"
            )
        if self.whole == Path.cwd() or self.whole in Path.cwd().parents:
            raise ValueError(f"--out {self.folder} is the folder you are in: give one of its own for the results")
        ours = _ours(self.folder)
        drawn = [f"figures/{picture.name}" for picture in figures.glob("*")] if self.draws else []
        foreign = [name for name in (*self.writes, *drawn) if (self.folder / name).exists() and name not in ours]
        if foreign:
            raise ValueError(
                f"{self.folder} holds {foreign[0]}, which is no result of messirl: "
                "give another folder with --out, or move it away"
            )
        if ours and not self.replace:
            raise ValueError(f"{self.folder} holds an earlier result: give another folder with --out, or --force")
        check_writable(self.folder / "any")
        for other in sorted(self.whole.parent.glob(f"{self.whole.name}{UNFINISHED}*")):
            note(f"{self._beside(other)} is of a command that is at work, or was stopped before it was done")
        while self.place.exists():
            self.place = self.place.with_name(f"{self.place.name}-2")
        check_writable(self.place)
        self.place.mkdir(parents=True)

    def _beside(self, place: Path) -> Path:
        """A place beside the folder, as somebody would write it who gave the name of the folder."""
        return self.folder.parent / place.name

    @property
    def watcher(self) -> Watcher:
        """Shows in the terminal what a workflow does; the folder is made when the work begins."""
        return Watcher(say, note, Progress, self.begin, lambda model: self.keep(model, self.place))

    def finish(self, name: str, summary: dict[str, Any], text: str, *, json: bool) -> int:
        """Write the summary, put all into its place, and print the text, or the summary as JSON."""
        self.write_summary(name, summary)
        self._settle()
        print(as_json(summary) if json else text)
        return 0

    def write_summary(self, name: str, summary: dict[str, Any]) -> None:
        """Write the summary with the files that were written so far."""
        files = sorted(file for file in self.place.rglob("*") if file.is_file() and file.name != name)
        summary["files"] = {file.relative_to(self.place).as_posix(): _checksum(file) for file in files}
        with beside(self.place / name) as part:
            part.write_text(as_json(summary) + "\n", encoding="utf-8")

    def _settle(self) -> None:
        """Put the folder that was written into the place of the old one, which is moved aside."""
        whole = self.whole
        settle(self.place)
        if not whole.exists():
            os.rename(self.place, whole)
            return
        ours, aside = _ours(whole), whole.with_name(whole.name + EARLIER)
        exchange(self.place, whole)  # from here on `place` is the old folder
        for entry in _others(self.place, ours):
            target = whole / entry.relative_to(self.place)
            target.parent.mkdir(exist_ok=True)
            os.rename(entry, target)
        if not ours:
            shutil.rmtree(self.place, ignore_errors=True)
            return
        if aside.exists():
            _remove(aside)
        os.rename(self.place, aside)
        note(f"the earlier result is in {self._beside(aside)}")


def _others(folder: Path, ours: set[str]) -> Iterator[Path]:
    """What is in a folder and is none of ours: whole folders where nothing in them is."""
    for entry in sorted(folder.iterdir()):
        name = entry.name
        if entry.is_dir() and any(one.startswith(f"{name}/") for one in ours):
            yield from (inner for inner in sorted(entry.iterdir()) if f"{name}/{inner.name}" not in ours)
        elif name not in ours:
            yield entry


def _remove(aside: Path) -> None:
    """Remove an earlier result; one that somebody added files to is renamed."""
    ours = _ours(aside)
    if not any(_others(aside, ours)):
        shutil.rmtree(aside)
        return
    number = 2
    while aside.with_name(f"{aside.name}-{number}").exists():
        number += 1
    os.rename(aside, aside.with_name(f"{aside.name}-{number}"))


def _ours(folder: Path) -> set[str]:
    """The names of the files in a folder that are results of ours: summaries, and what they list."""
    found: set[str] = set()
    for name in SUMMARIES:
        try:
            summary = json.loads((folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(summary, dict) and str(summary.get("command", "")).startswith("messirl "):
            found |= {name, *map(str, summary.get("files", ()))}
    return found


def _checksum(place: Path) -> str:
    with place.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
