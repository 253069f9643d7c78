"""The folder of a command's results, which appears at once when they are complete.

A command writes into a folder of its own beside it, `NAME.unfinished-PROCESS`, which takes the place of the folder in
one step at the end. A process that is killed before leaves the earlier result as it was, and what it had finished where
it wrote it. The earlier result is moved to `NAME.earlier`, where one is kept; files that are no results of ours stay.

The summary of a command (fit.json, select.json, …) lists under `files` what belongs to it, each with its checksum.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from messirl._files import beside, check_writable, exchange, settle
from messirl.app.cli._parser import as_json, note, say
from messirl.app.cli.progress import Progress
from messirl.app.workflow.watcher import Watcher

SUMMARIES = ("fit.json", "select.json", "diagnosis.json", "evaluate.json", "compare.json", "benchmark.json")
EARLIER, UNFINISHED = ".earlier", ".unfinished-"
MOVED = ".moved-by-messirl"  # the file that marks an earlier result, which the next one may replace


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
    def asked(cls, out: Path, *writes: str, report: bool, usual: str, force: bool = True, **how: Any) -> Self:
        """The results of a command with the options of `add_results`, and a page where one is wanted."""
        page = ("report.html",) if report else ()
        return cls(out, (*writes, *page), report, replace=force or str(out) == usual, **how)

    def __post_init__(self) -> None:
        self.whole = Path(os.path.realpath(self.folder))
        self.place = self.whole.parent / f"{self.whole.name}{UNFINISHED}{os.getpid()}"
        self.made, self.holds = False, "what was finished is"  # what `place` holds, once it is made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is None or not self.made or not self.place.is_dir():
            return
        if any(file.is_file() for file in self.place.rglob("*")):
            say(f"{self.holds} in {self._beside(self.place)}")
        else:
            shutil.rmtree(self.place, ignore_errors=True)

    def begin(self) -> None:
        """Make the folder to write into; refuse what would replace anything but a result of ours."""
        figures, asked = self.whole / "figures", f"{self.folder}/figures"
        if self.draws and figures.exists() and not figures.is_dir():
            raise ValueError(
                f"{asked} is no folder, but figures are to be written there: give another folder with --out"
            )
        if self.whole == Path.cwd() or self.whole in Path.cwd().parents:
            raise ValueError(f"--out {self.folder} is the folder you are in: give one of its own for the results")
        ours = _ours(self.whole)
        drawn = [f"figures/{picture.name}" for picture in figures.glob("*")] if self.draws else []
        foreign = [name for name in (*self.writes, *drawn) if os.path.lexists(self.whole / name) and name not in ours]
        if foreign:
            raise ValueError(
                f"{self.folder} holds {foreign[0]}, which is no result of messirl: "
                "give another folder with --out, or move it away"
            )
        if ours and not self.replace:
            raise ValueError(f"{self.folder} holds an earlier result: give another folder with --out, or --force")
        if os.path.ismount(self.whole):
            raise ValueError(f"{self.folder} is mounted, and cannot be replaced: give a folder inside it with --out")
        check_writable(self.whole / "any")
        check_writable(self.place.with_name(f"{self.place.name}-new"))
        if self.whole.parent.is_dir():
            for other in sorted(self.whole.parent.iterdir()):
                if other.name.startswith(f"{self.whole.name}{UNFINISHED}"):
                    note(f"{self._beside(other)} is of a command that is at work, or was stopped: look into it")
        while not self.made:
            try:
                self.place.mkdir(parents=True)
                self.made = True
            except FileExistsError:
                self.place = self.place.with_name(f"{self.place.name}-2")

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
        ours = _ours(whole)
        shutil.copymode(whole, self.place)
        with contextlib.suppress(OSError):
            (whole / MOVED).unlink()
        exchange(self.place, whole)
        self.holds = "the earlier result, and files of yours, are"  # from here on `place` is the old folder
        for entry in list(_others(self.place, ours)):
            _move(entry, whole / entry.relative_to(self.place))
        if not ours and not any(file.is_file() for file in self.place.rglob("*")):
            shutil.rmtree(self.place, ignore_errors=True)
            return
        aside = _free(whole.with_name(whole.name + EARLIER))
        with contextlib.suppress(OSError):  # of a folder that cannot be written to; nothing then replaces it
            (self.place / MOVED).touch()
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


def _move(entry: Path, target: Path) -> None:
    """Move a file or a folder to a place; what is there already stays, and so does what it would replace."""
    if not os.path.lexists(target):
        target.parent.mkdir(exist_ok=True)
        os.rename(entry, target)
    elif entry.is_dir() and target.is_dir() and not entry.is_symlink() and not target.is_symlink():
        for inner in sorted(entry.iterdir()):
            _move(inner, target / inner.name)


def _free(aside: Path) -> Path:
    """The name for an earlier result: that of the one before, which is removed if it is as a command left it."""
    free, number = aside, 1
    while os.path.lexists(free):
        if free.is_dir() and not free.is_symlink() and _untouched(free):
            shutil.rmtree(free)
            break
        number += 1
        free = aside.with_name(f"{aside.name}-{number}")
    return free


def _untouched(folder: Path) -> bool:
    """Whether a folder holds a result that was moved there, with every file as it was written, and nothing else."""
    ours, told = _ours(folder), dict[str, str]()
    for name in SUMMARIES:
        told |= _listed(folder / name)
    there = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if not file.is_dir()}
    moved = there.pop(MOVED, None) is not None
    return (
        moved
        and bool(ours)
        and set(there) <= ours
        and all(name in SUMMARIES or _checksum(file) == told.get(name) for name, file in there.items())
    )


def _ours(folder: Path) -> set[str]:
    """The names of the files in a folder that are results of ours: summaries, and what they list."""
    return {one for name in SUMMARIES for one in _listed(folder / name)}


def is_summary(place: Path) -> bool:
    """Whether a file is a summary that a command of messirl wrote."""
    return bool(_listed(place))


def _listed(place: Path) -> dict[str, str]:
    """The files that a summary of ours lists, itself among them, with their checksums; none if it is no summary."""
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict) or not str(found.get("command", "")).startswith("messirl "):
        return {}
    files = found.get("files")
    return {place.name: ""} | ({str(k): str(v) for k, v in files.items()} if isinstance(files, dict) else {})


def _checksum(place: Path) -> str:
    with place.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
