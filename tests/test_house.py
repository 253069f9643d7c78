"""The order of the rooms, what may be imported where, and that a second process compiles nothing."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import messirl

HOUSE = Path(messirl.__file__).parent
ROOMS = [  # a file imports only from rooms above its own, and from its own
    ["_lazy", "_docstrings", "_types", "_files", "_checks", "_defaults", "_words", "_numbers"],
    ["execution"],
    ["problem"],
    ["planning"],
    ["similarity"],
    ["objective"],
    ["optimise"],
    ["estimators"],
    ["evaluation"],
    ["selection"],
    ["diagnostics"],
    ["dynamics"],
    ["loading"],
    ["io"],
    ["domains"],
    ["experiments"],
    ["workflow"],
    ["plot"],
    ["report"],
    ["lab"],
    ["cli"],
]
FLOOR = {room: floor for floor, rooms in enumerate(ROOMS) for room in rooms}
NEVER = {  # rooms above that are closed all the same
    "similarity": {"planning"},
    "optimise": {"planning", "objective"},
}
FILES = sorted(HOUSE.rglob("*.py"))
IDS = [str(path.relative_to(HOUSE)) for path in FILES]
every_file = pytest.mark.parametrize("path", FILES, ids=IDS)


def room_of(path: Path) -> str | None:
    """The room a file is in; None for the front door, messirl/__init__.py."""
    first = path.relative_to(HOUSE).parts[0]
    room = first.removesuffix(".py")
    return None if room in ("__init__", "__main__", "py") else room


def imports_of(path: Path) -> set[str]:
    """Full names of the modules a file imports, wherever in it."""
    package = ".".join(["messirl", *path.relative_to(HOUSE).parent.parts])
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                parts = parts[: len(parts) - (node.level - 1)]
                base = ".".join([*parts, base] if base else parts)
            found |= {base} if base != "messirl" else {f"messirl.{alias.name}" for alias in node.names}
    return found


def rooms_entered(path: Path) -> set[str]:
    names = (name.split(".")[1] for name in imports_of(path) if name.startswith("messirl."))
    return {name for name in names if not name.startswith("__")}  # __version__ is at the front door


# ------------------------------------------------------------ imports


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


def test_the_walk_sees_what_it_should(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "HOUSE", tmp_path)
    (tmp_path / "similarity").mkdir()
    path = tmp_path / "similarity" / "graph.py"
    path.write_text("import numpy as np\nfrom ..planning import api\ndef f():\n    from messirl import plot\n")
    assert imports_of(path) == {"numpy", "messirl.planning", "messirl.plot"}
    assert rooms_entered(path) == {"planning", "plot"}
    assert room_of(path) == "similarity"


@every_file
def test_numba_is_imported_in_one_file_only(path):
    if path != HOUSE / "planning" / "kernels.py":
        assert not {name for name in imports_of(path) if name.split(".")[0] == "numba"}


@every_file
def test_matplotlib_is_imported_when_a_picture_is_drawn_and_not_before(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
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
    if room in ("cli", "report", "lab"):
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
        assert not called, f"line {getattr(node, 'lineno', '?')}"


@every_file
def test_a_file_says_what_it_is(path):
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def test_public_names_are_there():
    for name in messirl.__all__:
        assert getattr(messirl, name) is not None
    assert set(messirl.__all__) <= set(dir(messirl))
    with pytest.raises(AttributeError, match="module 'messirl' has no attribute 'nonsense'"):
        messirl.nonsense  # noqa: B018


# ------------------------------------------------------------ dependencies

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
COMMANDS = {"pytest-xdist": "-n auto", "ruff": "bin/ruff", "mypy": "bin/mypy", "hatchling": "--no-build-isolation"}


def modules(requirements: list[str]) -> set[str]:
    """What is imported of packages: `scikit-learn>=1.6` is sklearn."""
    names = (re.match(r"[\w.-]+", requirement)[0] for requirement in requirements)
    return {{"scikit-learn": "sklearn"}.get(name, name).replace("-", "_") for name in names}


def imported(*folders: str) -> set[str]:
    """Packages of others that the files in these folders import, or ask pytest for, wherever in them."""
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    own = {"messirl", *folders, *(path.stem for folder in folders for path in (ROOT / folder).glob("*.py"))}
    found: set[str] = set()
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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
    wanted = modules([*PROJECT["dependencies"], *(r for extra in EXTRAS.keys() - {"dev"} for r in EXTRAS[extra])])
    assert imported("src") == wanted


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


def run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_messirl_imports_nothing_heavy():
    heavy = ("numpy", "scipy", "numba", "sklearn", "matplotlib", "pyarrow", "rich")
    code = f"import sys, messirl; print([name for name in {heavy!r} if name in sys.modules])"
    assert run(code).strip() == "[]"


EXERCISE = """
import json
import numpy as np
import numba.core.event as event

compiled = []

class Listener(event.Listener):
    def on_start(self, happened):
        compiled.append(str(happened.data["dispatcher"]))
    def on_end(self, happened):
        pass

event.register("numba:compile", Listener())

import scipy.sparse as sp
from messirl import MDP, Trajectories, optimal_policy, sample, soft_policy, soft_values, state_visitation
from messirl.planning import Planner, visits
from messirl.planning import kernels

rng = np.random.default_rng(0)
S, A = 6, 2
slippery = rng.dirichlet(np.ones(S), size=(S, A))
steady = np.zeros((S, A, S))
for s in range(S):
    steady[s, 0, min(s + 1, S - 1)] = steady[s, 1, max(s - 1, 0)] = 1.0
stuck = steady.copy()
stuck[1, 1] = 0.0
stuck[0] = 0.0
end, start, last = np.arange(S) == S - 1, np.full(S, 1 / S), np.eye(S)[S - 2]
by_state, by_step = np.full(S, -2.0), np.full((S, A), -2.0)

def exercise(transitions, reward, start=start, **arguments):
    features = np.ones((*reward.shape, 1))
    mdp = MDP(transitions, features, start=start, **arguments)
    policy = soft_policy(mdp, reward)
    soft_values(mdp, reward)
    state_visitation(mdp, policy)
    visits(mdp, policy)
    optimal_policy(mdp, reward)
    sample(mdp, policy, 3, 4, random_state=0)
    Planner(mdp, "causal", start)(reward)
    return mdp

for transitions in (slippery, steady):
    for reward in (by_state, by_step):
        finite = exercise(transitions, reward, horizon=4, discount=0.9)
        exercise(transitions, reward, horizon=4, discount=0.95, terminal=end)
        exercise(transitions, reward, discount=0.9)
        exercise(transitions, reward, discount=1.0, terminal=end)
        for tilted in (True, False):
            Planner(finite, "noncausal", start, tilted=tilted)(reward)
        soft_policy(finite, reward, "noncausal")
        aimed = MDP(transitions, np.ones((*reward.shape, 1)), discount=1.0)
        sample(aimed, soft_policy(aimed, reward, goal=2), 3, random_state=0, goal=2, start=start)
        Planner.for_trips(aimed, "causal", np.array([0, 1]), np.array([2, 2]), np.full(2, 0.5))(reward)
exercise(stuck, by_state, start=last, horizon=4, discount=0.95)
exercise(stuck, by_state, start=last, discount=0.9)
exercise(sp.csr_array(slippery.reshape(S * A, S)), by_state, discount=0.9)

dispatchers = {n: f for n, f in vars(kernels).items() if hasattr(f, "stats") and hasattr(f, "signatures")}
print(json.dumps({
    "compiled": compiled,
    "misses": {n: sum(f.stats.cache_misses.values()) for n, f in dispatchers.items()},
    "hits": {n: sum(f.stats.cache_hits.values()) for n, f in dispatchers.items()},
    "used": {n: len(f.signatures) for n, f in dispatchers.items()},
}))
"""


def test_a_second_process_compiles_nothing(tmp_path):
    first, second = (json.loads(run(EXERCISE, NUMBA_CACHE_DIR=str(tmp_path))) for _ in range(2))
    assert first["compiled"], "the listener hears"
    assert second["compiled"] == []
    assert sum(second["misses"].values()) == 0
    loops = {name for name, used in first["used"].items() if used and not name.startswith("_")}
    assert loops == {name for name in first["used"] if not name.startswith("_")}, "every public loop was exercised"
    assert all(second["hits"][name] > 0 for name in loops)
