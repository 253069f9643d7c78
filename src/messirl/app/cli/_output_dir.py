"""The result folder of a command, replaced atomically when the results are complete.

A command writes into a temporary folder beside it, `NAME.unfinished-PROCESS`, which replaces the folder in one step at
the end. If the process is killed before, the earlier result stays as it was and the temporary folder stays, too. The
earlier result is moved to `NAME.earlier`, which keeps one result; files that messirl did not write stay in place.

The summary of a command (fit.json, select.json, …) lists the files of the result under `files`, with checksums.
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

from messirl._files import atomic_path, check_writable, exchange_folders, flush_folder
from messirl.app.cli._parser import as_json, note, say
from messirl.app.cli.progress import Progress
from messirl.app.workflow.watcher import Watcher

SUMMARIES = ("fit.json", "select.json", "diagnosis.json", "evaluate.json", "compare.json", "benchmark.json")
EARLIER, UNFINISHED = ".earlier", ".unfinished-"
MOVED = ".moved-by-messirl"  # the file that marks an earlier result, which the next one may replace


@dataclass
class Results:
    """The result folder of a command.

    folder : place of the complete results
    writes : names of the files
    draws : whether pictures are written to a folder `figures`
    keep : called with the fitted model and the folder to write to, as soon as the model is fitted
    replace : whether an earlier result may be moved aside; otherwise it is an error
    """

    folder: Path
    writes: Sequence[str]
    draws: bool = False
    keep: Callable[[Any, Path], None] = lambda *_: None
    replace: bool = False

    @classmethod
    def from_options(cls, out: Path, *writes: str, report: bool, default: str, force: bool = True, **how: Any) -> Self:
        """Return the result folder for the options of `add_results`, with a report if one is requested."""
        page = ("report.html",) if report else ()
        return cls(out, (*writes, *page), report, replace=force or str(out) == default, **how)

    def __post_init__(self) -> None:
        self.whole = Path(os.path.realpath(self.folder))
        self.place = self.whole.parent / f"{self.whole.name}{UNFINISHED}{os.getpid()}"
        self.made, self.holds = False, "finished work is"  # contents of `place`, once it is made

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
        """Create the temporary folder; raise an error if anything but a result of messirl would be replaced."""
        figures, asked = self.whole / "figures", f"{self.folder}/figures"
        if self.draws and figures.exists() and not figures.is_dir():
            raise ValueError(f"{asked} is not a folder, but figures are written there: give another folder with --out")
        if self.whole == Path.cwd() or self.whole in Path.cwd().parents:
            raise ValueError(
                f"--out {self.folder} is the current folder or contains it: give a separate folder for the results"
            )
        ours = _ours(self.whole)
        drawn = [f"figures/{picture.name}" for picture in figures.glob("*")] if self.draws else []
        foreign = [name for name in (*self.writes, *drawn) if os.path.lexists(self.whole / name) and name not in ours]
        if foreign:
            raise ValueError(
                f"{self.folder} contains {foreign[0]}, which messirl did not write: "
                "give another folder with --out, or move this file away"
            )
        if ours and not self.replace:
            raise ValueError(f"{self.folder} contains an earlier result: give another folder with --out, or --force")
        if os.path.ismount(self.whole):
            raise ValueError(
                f"{self.folder} is a mount point and cannot be replaced: give a folder inside it with --out"
            )
        check_writable(self.whole / "any")
        check_writable(self.place.with_name(f"{self.place.name}-new"))
        if self.whole.parent.is_dir():
            for other in sorted(self.whole.parent.iterdir()):
                if other.name.startswith(f"{self.whole.name}{UNFINISHED}"):
                    note(f"{self._beside(other)} is the unfinished result of a stopped or running command: inspect it")
        while not self.made:
            try:
                self.place.mkdir(parents=True)
                self.made = True
            except FileExistsError:
                self.place = self.place.with_name(f"{self.place.name}-2")

    def _beside(self, place: Path) -> Path:
        """Return a path beside the folder, relative as the user gave the folder."""
        return self.folder.parent / place.name

    @property
    def watcher(self) -> Watcher:
        """Return a watcher that reports in the terminal and creates the folder when the work begins."""
        return Watcher(say, note, Progress, self.begin, lambda model: self.keep(model, self.place))

    def finish(self, name: str, summary: dict[str, Any], text: str, *, json: bool) -> int:
        """Write the summary, move the results into place, and print the text or the summary as JSON."""
        self.write_summary(name, summary)
        self._settle()
        print(as_json(summary) if json else text)
        return 0

    def write_summary(self, name: str, summary: dict[str, Any]) -> None:
        """Write the summary, with a list of the files written so far."""
        files = sorted(file for file in self.place.rglob("*") if file.is_file() and file.name != name)
        summary["files"] = {file.relative_to(self.place).as_posix(): _checksum(file) for file in files}
        with atomic_path(self.place / name) as part:
            part.write_text(as_json(summary) + "\n", encoding="utf-8")

    def _settle(self) -> None:
        """Replace the old folder by the new one, and move the old one aside."""
        whole = self.whole
        flush_folder(self.place)
        if not whole.exists():
            os.rename(self.place, whole)
            return
        ours = _ours(whole)
        shutil.copymode(whole, self.place)
        with contextlib.suppress(OSError):
            (whole / MOVED).unlink()
        exchange_folders(self.place, whole)
        self.holds = "the earlier result and files of yours are"  # from here on `place` is the old folder
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
    """Yield the entries of a folder that messirl did not write, as whole subfolders where possible."""
    for entry in sorted(folder.iterdir()):
        name = entry.name
        if entry.is_dir() and any(one.startswith(f"{name}/") for one in ours):
            yield from (inner for inner in sorted(entry.iterdir()) if f"{name}/{inner.name}" not in ours)
        elif name not in ours:
            yield entry


def _move(entry: Path, target: Path) -> None:
    """Move a file or a folder; existing files at the target are not replaced."""
    if not os.path.lexists(target):
        target.parent.mkdir(exist_ok=True)
        os.rename(entry, target)
    elif entry.is_dir() and target.is_dir() and not entry.is_symlink() and not target.is_symlink():
        for inner in sorted(entry.iterdir()):
            _move(inner, target / inner.name)


def _free(aside: Path) -> Path:
    """Return a free name for an earlier result; the one before it is removed if it was not modified."""
    free, number = aside, 1
    while os.path.lexists(free):
        if free.is_dir() and not free.is_symlink() and _untouched(free):
            shutil.rmtree(free)
            break
        number += 1
        free = aside.with_name(f"{aside.name}-{number}")
    return free


def _untouched(folder: Path) -> bool:
    """Return whether a folder contains only a result that was moved there, with unmodified files."""
    ours, checksums = _ours(folder), dict[str, str]()
    for name in SUMMARIES:
        checksums |= _listed(folder / name)
    there = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if not file.is_dir()}
    moved = there.pop(MOVED, None) is not None
    return (
        moved
        and bool(ours)
        and set(there) <= ours
        and all(name in SUMMARIES or _checksum(file) == checksums.get(name) for name, file in there.items())
    )


def _ours(folder: Path) -> set[str]:
    """Return the names of result files in a folder: summaries and the files they list."""
    return {one for name in SUMMARIES for one in _listed(folder / name)}


def is_summary(place: Path) -> bool:
    """Return whether a file is a summary that a command of messirl wrote."""
    return bool(_listed(place))


def _listed(place: Path) -> dict[str, str]:
    """Return the files that a summary lists, including itself, with checksums; empty if it is no summary."""
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
