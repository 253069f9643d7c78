"""The tiers of the tests: what the thin one keeps of a product, and that the lists of files and tests fit."""

from __future__ import annotations

import re
from itertools import combinations, product
from pathlib import Path
from types import SimpleNamespace

import pytest
from tiers import FULL_TESTS, PORTABLE_FILES, cover, mark

HERE = Path(__file__).resolve().parent


def test_a_cover_has_every_pair_that_meets_and_few_rows():
    rows = list(product(range(4), range(3), range(3), range(2)))
    rows = [row for row in rows if row[:2] != (3, 2)]  # not every product is whole
    kept = cover(rows)
    assert set(kept) < set(rows)
    assert len(kept) <= 14  # at least 11 pairs of the two longest
    pairs = [{pair for row in some for pair in combinations(enumerate(row), 2)} for some in (rows, kept)]
    assert pairs[0] == pairs[1]


@pytest.mark.parametrize("rows", [[()], [(1,), (2,)], list(product(range(3), range(4)))])
def test_two_factors_are_all_kept(rows):
    assert cover(rows) == rows


def test_every_test_and_file_in_the_lists_is_there():
    there = {
        f"{path.name}::{name}"
        for path in HERE.glob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert FULL_TESTS - there == set()
    assert PORTABLE_FILES - {path.name for path in HERE.glob("test_*.py")} == set()


class Item(SimpleNamespace):
    """What `mark` asks of a test."""

    def iter_markers(self, name):
        return [getattr(pytest.mark, name)(names, []).mark for names in self.decorators]

    def add_marker(self, name):
        self.marks.append(name)


def items_of(decorators, rows, file="test_any.py", name="test_any"):
    here = {"path": Path(file), "module": SimpleNamespace(__name__=file.removesuffix(".py")), "decorators": decorators}
    return [
        Item(nodeid=f"tests/{file}::{name}[{i}]", callspec=SimpleNamespace(params=row), marks=[], **here)
        for i, row in enumerate(rows)
    ]


def test_of_several_seeds_the_first_is_kept_and_arguments_listed_together_are_one_factor():
    values = list(product(range(3), range(2), range(2), range(2)))
    rows = [{"seed": seed, "kind": kind, "left": left, "right": right} for seed, kind, left, right in values]
    items = items_of(["seed", "kind", "left, right"], rows)
    mark(items)
    assert [item.marks for item in items] == [["full"] if row["seed"] else [] for row in rows]


def test_a_product_is_thinned_with_the_factors_of_its_fixtures():
    rows = [{"kind": kind, "actions": actions, "world": world} for kind, actions, world in product(range(3), repeat=3)]
    items = items_of(["kind", "actions"], rows, "test_mdp.py")
    mark(items)
    assert all("portable" in item.marks for item in items)
    assert sum("full" not in item.marks for item in items) <= 12


def test_what_is_listed_as_full_is_so_whatever_its_parameters():
    file, name = min(FULL_TESTS).split("::")
    items = items_of(["kind"], [{"kind": 0}, {"kind": 1}], file, name)
    mark(items)
    assert all("full" in item.marks for item in items)
