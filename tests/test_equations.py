"""docs/equations.md names, for every equation of the paper, functions that exist and speak of it."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from typing import NamedTuple

import pytest

import messirl

PAGE = Path(__file__).parents[1] / "docs" / "equations.md"
SOURCES = sorted(Path(messirl.__file__).parent.rglob("*.py"))
EQUATIONS = range(1, 10)


class Row(NamedTuple):
    label: str
    module: str
    name: str


def rows() -> list[Row]:
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 4 and cells[0] != "Paper" and set(cells[0]) != {"-"}:
            module, _, name = cells[2].strip("`").partition(":")
            assert all(cells), line
            found.append(Row(cells[0], module, name))
    return found


ROWS = rows()
every_row = pytest.mark.parametrize("row", ROWS, ids=[f"{row.label} {row.name}" for row in ROWS])


def numbers(text: str | None, word: str) -> set[int]:
    """Numbers of equations ("Eq") or algorithms ("Alg") in a text: Eq. 3, Eqs. 4 and 6, Eqs. 4–6."""
    found: set[int] = set()
    for several in re.findall(rf"\b{word}s?\. (\d+(?:(?:, | and |–| to )\d+)*)", text or ""):
        given = [int(number) for number in re.findall(r"\d+", several)]
        found |= set(range(given[0], given[-1] + 1)) if "–" in several or " to " in several else set(given)
    return found


def test_the_table_is_read():
    assert len(ROWS) >= 15
    assert all(re.fullmatch(r"(Eq\. \d|Alg\. \d|Section \d)", row.label) for row in ROWS), [row.label for row in ROWS]


def test_numbers_are_read_from_texts():
    assert numbers("by Eq. 3; see Eqs. 4 and 6, and Alg. 1", "Eq") == {3, 4, 6}
    assert numbers("Eqs. 4–6", "Eq") == {4, 5, 6}
    assert numbers("by Eq. 3; see Eqs. 4 and 6, and Alg. 1", "Alg") == {1}
    assert numbers(None, "Eq") == set()


@pytest.mark.parametrize("number", EQUATIONS)
def test_every_equation_is_in_the_table(number):
    assert f"Eq. {number}" in {row.label for row in ROWS}


def test_the_algorithm_the_similarity_and_the_scaling_are_in_the_table():
    names = {(row.label, row.name) for row in ROWS}
    assert {("Alg. 1", "rescaled"), ("Section 3", "RBF"), ("Section 3", "MDP.scaled")} <= names


@every_row
def test_what_the_table_names_exists_and_is_documented(row):
    thing = importlib.import_module(row.module)
    for part in row.name.split("."):
        thing = getattr(thing, part)
    assert callable(thing)
    assert thing.__module__ == row.module, "named where it is defined"
    assert thing.__doc__


@every_row
def test_its_documentation_speaks_of_the_equation(row):
    if row.label.startswith("Section"):
        return
    word, number = row.label.split(". ")
    module = importlib.import_module(row.module)
    thing = module
    for part in row.name.split("."):
        thing = getattr(thing, part)
    assert int(number) in numbers(thing.__doc__, word) | numbers(module.__doc__, word)


def test_no_docstring_speaks_of_an_equation_the_paper_does_not_have():
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                assert numbers(ast.get_docstring(node), "Eq") <= set(EQUATIONS), path
