"""Make an environment at one end of the ranges that pyproject.toml declares.

    python tools/environment.py oldest    .venv-oldest: each package at its lower bound, on the oldest Python allowed
    python tools/environment.py newest    .venv-newest: the newest of each, on the newest Python of this machine

Needs nothing beyond Python and pip. A Python for which some package has no wheel is passed over, with a word.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

HOUSE = Path(__file__).resolve().parent.parent
EXTRAS = ("dev", "docs", "cluster", "gym", "hdf5", "lab", "minari")
ASK = (
    "import ensurepip, json, sys, venv; v = sys.version_info; "
    "print(json.dumps([v[:3], v.releaselevel == 'final', sys._base_executable]))"
)
NAMES = re.compile(r"python3(\.\d+)?")


def requirements(project: dict[str, object], end: str) -> list[str]:
    """Every package of the project and of EXTRAS: `name==lower bound` for the oldest, as declared for the newest."""
    declared = [*project["dependencies"], *(r for extra in EXTRAS for r in project["optional-dependencies"][extra])]
    return [at_its_oldest(requirement) if end == "oldest" else requirement for requirement in declared]


def at_its_oldest(requirement: str) -> str:
    """`name>=1.2,<3` → `name==1.2`."""
    found = re.fullmatch(r"([\w.-]+(?:\[[\w,-]+\])?)>=([\w.]+)(?:,.*)?", requirement.replace(" ", ""))
    if found is None:
        raise SystemExit(f"pyproject.toml asks for {requirement!r}: give it a lower bound, name>=version")
    return f"{found[1]}=={found[2]}"


def pythons(least: tuple[int, int]) -> list[tuple[tuple[int, int, int], str]]:
    """The released Pythons on the path, and those of pyenv, that are recent enough: (version, executable), sorted."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    folders += sorted(pyenv.glob("versions/*/bin"))
    found = {}
    for folder in folders:
        for path in sorted(folder.glob("python3*")):
            if not NAMES.fullmatch(path.name):
                continue
            told = subprocess.run([str(path), "-c", ASK], capture_output=True, text=True, check=False)
            if told.returncode == 0:
                version, released, executable = json.loads(told.stdout)
                if released and tuple(version[:2]) >= least:
                    found.setdefault(tuple(version), executable)
    return sorted(found.items())


def make(python: str, where: Path, wanted: list[str]) -> bool:
    """The environment, with messirl in editable mode; False where a package cannot be had."""
    same = [python, "-c", "import sys; print(sys.version)"]
    there = where / "bin" / "python"
    if not there.exists() or _said(same) != _said([str(there), *same[1:]]):
        subprocess.run([python, "-m", "venv", "--clear", str(where)], check=True)
    pip = [str(there), "-m", "pip", "--disable-pip-version-check", "-qq", "install", "--no-compile"]
    newest = ["--upgrade", "--upgrade-strategy", "eager", "--only-binary", ":all:", *wanted]
    if subprocess.run([*pip, *newest], check=False, cwd=HOUSE).returncode:
        return False
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "-e", str(HOUSE)], check=True)
    return True


def _said(command: list[str]) -> str | None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def main(end: str) -> None:
    project = tomllib.loads((HOUSE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    least = tuple(int(part) for part in project["requires-python"].removeprefix(">=").split("."))
    where, wanted = HOUSE / f".venv-{end}", requirements(project, end)
    available = pythons(least)
    for version, python in available if end == "oldest" else reversed(available):
        name = ".".join(map(str, version))
        print(f"Making {where.name} with Python {name}.", flush=True)
        if make(python, where, wanted):
            return
        shutil.rmtree(where, ignore_errors=True)
        print(f"With Python {name} not every package can be had: trying another.", flush=True)
    raise SystemExit(f"no Python from {'.'.join(map(str, least))} on was found with which {where.name} can be made")


if __name__ == "__main__":
    if sys.argv[1:] not in (["oldest"], ["newest"]):
        raise SystemExit(__doc__)
    main(sys.argv[1])
