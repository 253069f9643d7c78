"""The order of the rooms, what may be imported where, and that a second process compiles nothing."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import messirl

ROOT = Path(__file__).parent.parent
HOUSE = Path(messirl.__file__).parent
NEVER = {  # rooms above that are closed all the same
    "similarity": {"planning"},
    "optim": {"planning", "objective"},
}
GROUPS = {"app", "paper"}  # folders of rooms: each of their folders is a room of its own
COMPUTED = {"_lazy.py", "app/cli/__init__.py"}  # where the name of a module that is imported may be computed


def picture_of(text: str) -> dict[str, dict[str, int]]:
    """The house as CONTRIBUTING.md draws it: the names in each folder ("" is the house), each with its line.

    Two blanks before a name make it a room, four a part of the room above it; deeper lines go on with a description.
    """
    lines = re.search(r"```\nsrc/messirl/\n(.*?)\n```", text, re.DOTALL)[1].splitlines()
    found: dict[str, dict[str, int]] = {"": {}}
    folder = ""
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if indent not in (2, 4):
            continue
        names = re.match(r"(?:[\w/]+(?:/|\.py)(?: |$))+", line.strip())[0].split()
        described = line.strip().removeprefix(" ".join(names)).strip() or lines[number + 1].startswith(" " * 6)
        assert described, f"nothing is said of {names}"
        if indent == 2:
            folder = names[-1].rstrip("/")
        place = found.setdefault("" if indent == 2 else folder, {})
        place.update(dict.fromkeys((name.removesuffix("/") for name in names), number))
    return found


PICTURE = picture_of((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
FLOOR = {name.removesuffix(".py"): line for name, line in PICTURE[""].items()}
FILES = sorted([*HOUSE.rglob("*.py"), *HOUSE.rglob("*.pyi")])  # a stub says what its package imports later


def every_file(rule):
    """A test that a rule holds for every file; it names those that break it."""

    def test():
        broken = []
        for path in FILES:
            try:
                rule(path)
            except AssertionError as error:
                broken.append(f"{path.relative_to(HOUSE)}: {error}")
        assert not broken, "\n".join(broken)

    test.__name__, test.__doc__ = rule.__name__, rule.__doc__
    return test


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def room_of(path: Path) -> str | None:
    """The room a file is in; None for the front door, messirl/__init__.py."""
    first, *rest = (part.removesuffix(".pyi").removesuffix(".py") for part in path.relative_to(HOUSE).parts)
    room = f"{first}/{rest[0]}" if first in GROUPS else first
    return None if room.split("/")[-1] in ("__init__", "__main__", "py") else room


def is_module(name: str) -> bool:
    """Whether a full name is that of a file or folder of the house."""
    place = HOUSE.joinpath(*name.split(".")[1:])
    return name.split(".")[0] == "messirl" and (place.is_dir() or place.with_suffix(".py").is_file())


@cache
def imports_of(path: Path) -> set[str]:
    """Full names of the modules a file imports, wherever in it, now or later: a text that is such a name counts."""
    package = ".".join(["messirl", *path.relative_to(HOUSE).parent.parts])
    found: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                parts = parts[: len(parts) - (node.level - 1)]
                base = ".".join([*parts, base] if base else parts)
            full = {f"{base}.{alias.name}" for alias in node.names}
            found |= full if base == "messirl" else {name if is_module(name) else base for name in full}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and is_module(node.value):
            found.add(node.value)
    return found - {"messirl"}


def computed_imports(path: Path) -> list[int]:
    """Lines that import a module whose name is not written there."""
    calls = (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call))
    return [
        call.lineno
        for call in calls
        if (getattr(call.func, "attr", None) or getattr(call.func, "id", None)) in ("import_module", "__import__")
        and not (call.args and isinstance(call.args[0], ast.Constant))
    ]


def rooms_entered(path: Path) -> set[str]:
    names = (name.split(".")[1:] for name in imports_of(path) if name.startswith("messirl."))
    rooms = ("/".join(name[:2]) if name[0] in GROUPS else name[0] for name in names)
    return {room for room in rooms if not room.startswith("__")}  # __version__ is at the front door


# ------------------------------------------------------------ imports


@pytest.mark.parametrize("folder", PICTURE)
def test_the_picture_of_the_house_shows_what_there_is(folder):
    there = {path.name for path in (HOUSE / folder).glob("*.py")} - {"__init__.py"}
    there |= {path.parent.name for path in (HOUSE / folder).glob("*/__init__.py")}
    if not folder:
        inside = [path.parent for group in GROUPS for path in (HOUSE / group).glob("*/__init__.py")]
        there = there - GROUPS | {path.relative_to(HOUSE).as_posix() for path in inside}
    assert set(PICTURE[folder]) == there


@every_file
def test_every_file_is_in_a_room_of_the_house(path):
    assert room_of(path) is None or room_of(path) in FLOOR


@every_file
def test_a_file_imports_only_from_rooms_above_its_own(path):
    room = room_of(path)
    if room is None:
        return
    for other in rooms_entered(path):
        assert other in FLOOR, f"{other} is no room: import from where the name is defined"
        above = FLOOR[other] < FLOOR[room] or other == room
        assert above, f"{room} must not import {other}"
        assert other not in NEVER.get(room, ()), f"{room} must never import {other}"


@every_file
def test_a_file_imports_only_from_parts_of_its_room_above_its_own(path):
    room = room_of(path) or ""
    order = {name.removesuffix(".py"): line for name, line in PICTURE.get(room, {}).items()} if room else {}
    if not order or (path.name.startswith("__init__") and path.parent == HOUSE / room):
        return
    part, package = path.relative_to(HOUSE / room).parts[0].removesuffix(".py"), f"messirl.{room.replace('/', '.')}"
    for name in imports_of(path):
        if not f"{name}.".startswith(f"{package}."):
            continue
        assert name != package, f"{room}/{part} must import from where the name is defined"
        other = name.removeprefix(f"{package}.").split(".")[0]
        assert order[other] < order[part] or other == part, f"{room}/{part} must not import {room}/{other}"


@every_file
def test_what_a_file_imports_is_written_in_it(path):
    if path.relative_to(HOUSE).as_posix() not in COMPUTED:
        assert computed_imports(path) == []


def test_a_rule_names_the_files_that_break_it():
    @every_file
    def rule(path):
        assert path.name != "objective.py", "not this one"

    with pytest.raises(AssertionError, match=r"^objective\.py: not this one"):
        rule()


def test_the_walk_sees_what_it_should(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "HOUSE", tmp_path)
    for name in ("similarity", "dynamics", "io/folder"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "io" / "tables.py").touch()
    path = tmp_path / "similarity" / "graph.py"
    path.write_text(
        "import numpy as np\n"
        "from ..planning import api\n"
        "if TYPE_CHECKING:\n    from messirl.io import folder, tables, read\n"
        "def f(name):\n    from messirl import plot\n    import_module('messirl.dynamics')\n    import_module(name)\n"
        "HOMES = {'x': 'messirl.io.tables', 'y': 'messirl.plain', 'z': 'see messirl.paper.domains'}\n"
    )
    inside = {"planning", "plot", "io", "io.folder", "io.tables", "dynamics"}
    assert imports_of(path) == {"numpy", *(f"messirl.{name}" for name in inside)}
    assert rooms_entered(path) == {"planning", "plot", "io", "dynamics"}
    assert room_of(path) == "similarity"
    assert computed_imports(path) == [8]


def test_the_picture_is_read_line_by_line():
    lines = ["  _a.py _b.py", "         ground", "  io/   all", "    x/ y.py  two", "    z/ one", "  cli/ end"]
    text = "\n".join(["…", "```", "src/messirl/", *lines, "```", "…"])
    assert picture_of(text) == {"": {"_a.py": 0, "_b.py": 0, "io": 2, "cli": 5}, "io": {"x": 3, "y.py": 3, "z": 4}}
    with pytest.raises(AssertionError, match="nothing is said of"):
        picture_of(text.replace("   all", ""))


@every_file
def test_numba_is_imported_in_one_file_only(path):
    if path != HOUSE / "_compiled.py":
        assert not {name for name in imports_of(path) if name.split(".")[0] == "numba"}


@every_file
def test_matplotlib_is_imported_when_a_picture_is_drawn_and_not_before(path):
    tree = tree_of(path)
    for node in tree.body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not any(name.split(".")[0] == "matplotlib" for name in names)


# ------------------------------------------------------------ files


@every_file
def test_a_file_is_short(path):
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= 500, f"{lines} lines: one idea a file"


@every_file
def test_the_library_does_not_print(path):
    room = room_of(path)
    if room in ("app/cli", "app/report", "app/lab"):
        return
    for node in ast.walk(tree_of(path)):
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
        assert not called, f"line {getattr(node, 'lineno', '?')}"


@every_file
def test_a_file_says_what_it_is(path):
    assert ast.get_docstring(tree_of(path))


def test_public_names_are_there():
    for name in messirl.__all__:
        assert getattr(messirl, name) is not None
    assert set(messirl.__all__) <= set(dir(messirl))
    with pytest.raises(AttributeError, match="module 'messirl' has no attribute 'nonsense'"):
        messirl.nonsense  # noqa: B018


# ------------------------------------------------------------ dependencies

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EVERY, EXTRAS = PROJECT["optional-dependencies"]["all"], dict(PROJECT["optional-dependencies"])
del EXTRAS["all"]
COMMANDS = {"pytest-xdist": "-n auto", "ruff": "bin/ruff", "mypy": "bin/mypy", "hatchling": "--no-build-isolation"}


def modules(requirements: list[str]) -> set[str]:
    """What is imported of packages: `scikit-learn>=1.6` is sklearn."""
    names = (re.match(r"[\w.-]+", requirement)[0] for requirement in requirements)
    return {{"scikit-learn": "sklearn", "pillow": "PIL"}.get(name, name).replace("-", "_") for name in names}


def imported(*folders: str) -> set[str]:
    """Packages of others that the files in these folders import, or ask pytest for, wherever in them."""
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    own = {
        "messirl",
        "benchmarks",
        *folders,
        *(path.stem for folder in folders for path in (ROOT / folder).glob("*.py")),
    }
    found: set[str] = set()
    for path in files:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(node.module or "")
            elif (
                isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "importorskip"
            ):
                found |= {arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant)}
    return {name.split(".")[0] for name in found} - own - sys.stdlib_module_names


def test_what_the_package_asks_for_is_what_it_imports():
    wanted = modules(
        [*PROJECT["dependencies"], *(r for extra in EXTRAS.keys() - {"dev", "docs"} for r in EXTRAS[extra])]
    )
    assert imported("src") == wanted


def test_all_is_every_extra_of_users():
    names = ",".join(sorted(EXTRAS.keys() - {"dev", "docs"}))
    assert [f"messirl[{names}]"] == EVERY


def test_what_the_tests_ask_for_is_what_they_import_or_call():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    called = {package for package, word in COMMANDS.items() if word in makefile}
    everything = modules([*PROJECT["dependencies"], *(r for extra in EXTRAS.values() for r in extra)])
    used = imported("tests", "tools", "studies", "examples") | modules(list(called))
    assert used <= everything
    assert modules(EXTRAS["dev"]) <= used


@pytest.mark.parametrize("extra", EXTRAS)
def test_everything_asked_for_has_a_lower_bound_that_a_lane_can_install(extra):
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import environment
    finally:
        sys.path.pop(0)
    for requirement in [*PROJECT["dependencies"], *EXTRAS[extra]]:
        assert environment.at_its_oldest(requirement) == requirement.replace(">=", "==")
    assert extra in environment.EXTRAS


# ------------------------------------------------------------ processes


def run(*words: str) -> str:
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_messirl_imports_nothing_heavy():
    heavy = ("numpy", "scipy", "numba", "sklearn", "matplotlib", "pyarrow", "rich")
    code = f"import sys, messirl; print([name for name in {heavy!r} if name in sys.modules])"
    assert run("-c", code).strip() == "[]"


@pytest.mark.slow
def test_a_second_process_compiles_nothing():
    """The first finds what earlier tests have compiled, or compiles it."""
    first, second = (json.loads(run(str(ROOT / "tests" / "exercise.py"))) for _ in range(2))
    assert second["compiled"] == ["never_kept"]
    assert sum(second["misses"].values()) == 0
    loops = {name for name, used in first["used"].items() if used and not name.startswith("_")}
    assert loops == {name for name in first["used"] if not name.startswith("_")}, "every public loop was exercised"
    assert all(second["hits"][name] > 0 for name in loops)
