"""A full disk, or a kill, at every step of a command that writes: the folder then holds the old result or the new one.

    python tests/unlucky_writes.py [--points 50]

A command is run again in a folder that holds its earlier result, each time in a process of its own that fails, or is
killed, before one of the operations that change the disk: opening for writing, renaming, making and removing folders.
What is in the folder is then compared with both results, file by file.
"""

from __future__ import annotations

import argparse
import builtins
import errno
import hashlib
import io
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from folders import park

import messirl
from messirl.app import cli

OPERATIONS = ("rename", "replace", "mkdir", "rmdir", "unlink", "link", "fsync")
RECORDINGS = "t,x,y,who\n" + "\n".join(f"{t},{t % 4},{t // 4 % 3},{'ab'[t // 12]}" for t in range(24)) + "\n"
Words = Callable[[Path, int], list[str]]


def of_fit(place: Path, step: int) -> list[str]:
    more = ["--max-iter", str(3 + step)]
    return ["fit", str(place / "park"), "--no-baselines", *more, "--out", str(place / "out"), "--force"]


def of_compare(place: Path, step: int) -> list[str]:
    words = ["compare", str(place / "park"), "--expert", "age < 40", "--methods", "MaxEnt,uniform"]
    return [*words, "--seed", "1", "--jobs", "1", "--out", str(place / "out"), *(["--no-report"] if step else [])]


def of_import(place: Path, step: int) -> list[str]:
    words = ["import", str(place / "raw.csv"), str(place / "out"), "--id", "who", "--time", "t", "--coordinates"]
    return [
        *words,
        *(["--grid", "2", "--discount", "0.8"] if step else ["--grid", "1", "--discount", "0.9"]),
        "--force",
    ]


COMMANDS: dict[str, Words] = {"fit": of_fit, "compare": of_compare, "import": of_import}


class Unlucky:
    """Counts the operations that change the disk, and fails or dies before one of them."""

    def __init__(self, at: int, how: str) -> None:
        self.at, self.how, self.done = at, how, 0

    def __call__(self) -> None:
        self.done += 1
        if self.done - 1 == self.at:
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError(errno.ENOSPC, "No space left on device")

    def install(self) -> None:
        """Put it before the functions of Python that change the disk."""
        for name in OPERATIONS:
            setattr(os, name, self._before(getattr(os, name)))
        plain = io.open

        def opened(file: Any, mode: str = "r", *rest: Any, **named: Any) -> Any:
            if set(mode) & set("wax+") and file not in (1, 2):
                self()
            return plain(file, mode, *rest, **named)

        builtins.open = io.open = opened

    def _before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def unlucky(*arguments: Any, **named: Any) -> Any:
            self()
            return function(*arguments, **named)

        return unlucky


def in_a_child(words: list[str], unlucky: Unlucky) -> tuple[int, int]:
    """Its exit code (below 0: killed), and how many operations there were."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        unlucky.install()
        code = cli.main(words)
        os.write(writer, str(unlucky.done).encode())
        os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        told = pipe.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), int(told or 0)


def content(folder: Path) -> Any:
    """What a folder holds, as somebody finds it who reads it: all but what changes from run to run.

    Of a problem what is read; of results the command that made them, the names of all files, and those whose checksum
    is not the one in the summary. What is kept between runs does not count.
    """
    if (folder / "edges.parquet").exists():
        problem = messirl.read_problem(folder)
        return problem.mdp.discount, problem.mdp.n_states, problem.xy.tolist(), len(problem.trajectories)
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    names = {name for name in found if not name.startswith(("rows/", "."))}
    (summary,) = (json.loads(found[name].read_bytes()) for name in ("fit.json", "compare.json") if name in found)
    sums = {name: f"sha256:{hashlib.sha256(found[name].read_bytes()).hexdigest()}" for name in summary["files"]}
    other = [name for name, told in summary["files"].items() if sums[name] != told]
    return summary["command"], names, other


def cases(name: str, points: int, how: str) -> Iterator[str]:
    """What is wrong after each of the points at which a command was stopped."""
    words = COMMANDS[name]
    with tempfile.TemporaryDirectory() as top:
        place = Path(top) / "work"
        place.mkdir()
        park(place / "park")
        (place / "raw.csv").write_text(RECORDINGS)
        assert in_a_child(words(place, 0), Unlucky(-1, how))[0] == 0
        shutil.copytree(place, Path(top) / "before")
        old = content(place / "out")
        code, many = in_a_child(words(place, 1), Unlucky(-1, how))
        assert code == 0
        new = content(place / "out")
        assert old != new
        for number in sorted({round(i * (many - 1) / (points - 1)) for i in range(points)}):
            shutil.rmtree(place)
            shutil.copytree(Path(top) / "before", place)
            code, _ = in_a_child(words(place, 1), Unlucky(number, how))
            found = content(place / "out")
            if found not in (old, new):
                yield f"{name}, {how} at {number} of {many} (exit {code}): {found}"
            if in_a_child(words(place, 1), Unlucky(-1, how))[0] != 0:
                yield f"{name}, {how} at {number} of {many}: the next run fails"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=50)
    arguments = parser.parse_args()
    faults = 0
    for name in COMMANDS:
        for how in ("disk full", "kill"):
            for fault in cases(name, arguments.points, how):
                faults += 1
                print(fault, flush=True)
            print(f"{name}, {how}: done", flush=True)
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
