"""Build the wheel and the source distribution, look into them, and try the wheel in an empty environment.

    python tools/dist.py            build and look; needs hatchling, and no network
    python tools/dist.py --try      then install the wheel into .venv-dist, and run the README from there

Whatever is wrong is named, and the exit code is 1.
"""

from __future__ import annotations

import email
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

HOUSE = Path(__file__).resolve().parent.parent
SOURCE = HOUSE / "src"
BESIDE = {"CHANGELOG.md", "CITATION.cff", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml", ".gitignore"}
LARGEST = 3_000_000  # bytes of either file
LITTLE_PYTHON = """
import numpy as np
transitions = np.stack([np.eye(6)[[0, 0, 1, 2, 3, 4]], np.eye(6)[[1, 2, 3, 4, 5, 5]]], axis=1)
features = np.linspace(0, 1, 6)[:, None]
good = [[min(i, 5) for i in range(60)], [min(i + 2, 5) for i in range(60)]]
rest = [[abs(i % 10 - 5) for i in range(60)], [5 - abs(i % 10 - 5) for i in range(60)]]
held_out = [[min(i + 1, 5) for i in range(60)]]
"""
COMMANDS = (
    ["--version"],
    ["--help"],
    ["example", "museum"],
    ["check", "museum"],
    ["fit", "museum", "--expert", "who = guide", "--unlabelled", "who = tourist"],
)


def build(out: Path, house: Path = HOUSE) -> list[Path]:
    """Both files, made from what is there now: first the source, then the wheel."""
    shutil.rmtree(out, ignore_errors=True)
    surroundings = {**os.environ, "SOURCE_DATE_EPOCH": "1577836800"}  # the same bytes whenever they are built
    words = [sys.executable, "-m", "hatchling", "build", "--directory", str(out)]
    subprocess.run(words, cwd=house, env=surroundings, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return sorted(out.iterdir(), key=lambda path: path.suffix)  # .gz, .whl


def own_files() -> set[str]:
    """What the package consists of, whatever it is: code, stubs, py.typed, files of pages."""
    every = (path for path in (SOURCE / "messirl").rglob("*") if path.is_file())
    return {path.relative_to(SOURCE).as_posix() for path in every if "__pycache__" not in path.parts}


def faults_of_wheel(wheel: Path, project: dict[str, object]) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        told = email.message_from_bytes(archive.read(metadata))
        entry = archive.read(metadata.replace("METADATA", "entry_points.txt")).decode()
    inside = {name for name in names if ".dist-info/" not in name}
    faults = [f"the wheel lacks {name}" for name in sorted(own_files() - inside)]
    faults += [f"the wheel holds {name}" for name in sorted(inside - own_files())]
    faults += [f"the wheel lacks {name}" for name in ("messirl/py.typed", "messirl/__init__.pyi") if name not in inside]
    faults += [] if any(name.endswith("licenses/LICENSE") for name in names) else ["the wheel lacks the licence"]
    faults += [] if "messirl = messirl.app.cli:main" in entry else ["the command messirl is missing"]
    return faults + faults_of_metadata(told, project)


def faults_of_metadata(told: email.message.Message, project: dict[str, object]) -> list[str]:
    wanted = {"Name": "messirl", "Version": project["version"], "License-Expression": "MIT"}
    wanted |= {"Requires-Python": project["requires-python"], "Summary": project["description"]}
    faults = [f"{name} is {told[name]!r}, not {value!r}" for name, value in wanted.items() if told[name] != value]
    asked = {re.match(r"[\w.-]+", one)[0] for one in told.get_all("Requires-Dist", []) if "extra ==" not in one}
    declared = {re.match(r"[\w.-]+", one)[0] for one in project["dependencies"]}
    faults += [] if asked == declared else [f"it asks for {sorted(asked)}, not for {sorted(declared)}"]
    newest = re.search(r"^## \[(\d[^\]]*)\]", (HOUSE / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    cited = re.search(r"^version: (.*)$", (HOUSE / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    for place, found in (("CHANGELOG.md", newest), ("CITATION.cff", cited)):
        version = None if found is None else found[1]
        faults += [] if version == project["version"] else [f"{place} is at {version}, not at {project['version']}"]
    return faults


def faults_of_source(archive: Path) -> list[str]:
    with tarfile.open(archive) as found:
        names = {member.name.partition("/")[2] for member in found.getmembers() if member.isfile()}
    wanted = {f"src/{name}" for name in own_files()} | BESIDE - {".gitignore"}
    strange = names - wanted - BESIDE
    return [f"the source distribution lacks {name}" for name in sorted(wanted - names)] + [
        f"the source distribution holds {name}" for name in sorted(strange)
    ]


def faults_of_bytes(made: list[Path]) -> list[str]:
    """Whether the files are small, and whether the source distribution, built in turn, gives the same bytes."""
    with tempfile.TemporaryDirectory() as place:
        shutil.unpack_archive(made[0], place)
        again = sums(build(Path(place) / "again", Path(place) / made[0].name.removesuffix(".tar.gz")))
    large = [f"{path.name} has {path.stat().st_size:,} bytes" for path in made if path.stat().st_size > LARGEST]
    return large + [
        f"{name} is other bytes when it is built from the source distribution"
        for name, own in sums(made).items()
        if again.get(name) != own
    ]


def sums(files: list[Path]) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def try_out(wheel: Path) -> None:
    """Install the wheel and what it asks for, nothing else, and do what the README says."""
    where = HOUSE / ".venv-dist"
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(where)], check=True)
    with tempfile.TemporaryDirectory() as place:
        pins = Path(place) / "pins.txt"  # the versions of the lock, of what is asked for
        lock = (HOUSE / "requirements.lock").read_text(encoding="utf-8")
        pins.write_text("\n".join(re.findall(r"^[\w.-]+==[\w.]+", lock, re.MULTILINE)), encoding="utf-8")
        pip = [str(where / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "-q"]
        subprocess.run([*pip, "install", "-c", str(pins), str(wheel)], check=True)
        subprocess.run([*pip, "check"], check=True)
        readme = (HOUSE / "README.md").read_text(encoding="utf-8")
        quick = LITTLE_PYTHON + "\n".join(re.findall(r"```python\n(.*?)```", readme, re.DOTALL))
        quick += "\nimport messirl\nassert '.venv-dist' in messirl.__file__, messirl.__file__\n"
        clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        done: dict[str, object] = {"cwd": place, "env": clean, "check": True}
        subprocess.run([str(where / "bin" / "python"), "-W", "error", "-c", quick], **done)
        for words in COMMANDS:
            print("messirl", *words, flush=True)
            subprocess.run([str(where / "bin" / "messirl"), *words], stdout=subprocess.DEVNULL, **done)
        if not (Path(place) / "out" / "fit" / "report.html").is_file():
            raise SystemExit("messirl fit wrote no report")


def main() -> None:
    project = tomllib.loads((HOUSE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    made = build(HOUSE / "dist")
    source, wheel = made
    faults = faults_of_wheel(wheel, project) + faults_of_source(source) + faults_of_bytes(made)
    for path in made:
        print(f"{path.relative_to(HOUSE)}: {path.stat().st_size / 1e6:.2f} MB")
    if faults:
        raise SystemExit("\n".join(faults))
    if "--try" in sys.argv[1:]:
        try_out(wheel)
        print("installed into an empty environment, and tried")


if __name__ == "__main__":
    main()
