"""What `help` shows: every parameter, every fitted attribute, an example that runs, a reference."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

import messirl

HOUSE = Path(messirl.__file__).parent
SECTIONS = ("Parameters", "Attributes", "References", "Examples")
CLASSES = {
    "MDP": "messirl",
    "Trajectories": "messirl",
}
every_class = pytest.mark.parametrize("name", CLASSES)


def sections(text: str) -> dict[str, list[str]]:
    """The lines of each section of a docstring, by its title."""
    found: dict[str, list[str]] = {"": []}
    title = ""
    lines = inspect.cleandoc(text).splitlines()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if below and set(below) == {"-"} and len(below) == len(line):
            title = line
            found[title] = []
        elif not (line and set(line) == {"-"}):
            found[title].append(line)
    return found


def named(lines: list[str]) -> set[str]:
    """What a section lists: the names before the colon of lines that are not indented."""
    heads = [re.split(r"\s:\s", line)[0] for line in lines if line and not line.startswith(" ")]
    return {name.strip() for head in heads for name in head.split(",")}


def public(name: str) -> type:
    return getattr(importlib.import_module(CLASSES[name]), name)


@every_class
def test_a_class_has_all_sections_in_order(name):
    assert tuple(title for title in sections(public(name).__doc__) if title) == SECTIONS


@every_class
def test_every_parameter_is_explained_and_no_other(name):
    cls = public(name)
    assert named(sections(cls.__doc__)["Parameters"]) == set(inspect.signature(cls).parameters)


@every_class
def test_an_example_is_there(name):
    assert any(line.startswith(">>>") for line in sections(public(name).__doc__)["Examples"])


def test_sections_and_names_are_found_where_they_are():
    text = "What it is.\n\n    Parameters\n    ----------\n    a, b : int\n        Two.\n    c\n    "
    assert named(sections(text)["Parameters"]) == {"a", "b", "c"}


MODULES = [path for path in sorted(HOUSE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(HOUSE)))
def test_examples_give_what_they_show(path):
    parts = ["messirl", *path.relative_to(HOUSE).with_suffix("").parts]
    module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0
