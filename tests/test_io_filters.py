"""The filter language: what it selects, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_array_equal

from messirl.io import InputError, select

META = {
    "role": np.array(["expert", "test", None, "expert"], dtype=object),
    "mouse": np.array(["B 1", "B2", "B2", "it's"]),
    "bout": np.array([0, 1, 2, 3]),
    "share": np.array([0.0, 0.5, np.nan, 1.0]),
    "thirsty": np.array([True, False, True, True]),
    "age": np.array([None, 3, 4, None], dtype=object),
    "day": np.array(["2024-01-01", "2024-01-02", "NaT", "2024-02-01"], dtype="datetime64[D]"),
    "a b": np.array([1, 2, 3, 4]),
}


@pytest.mark.parametrize(
    ("expression", "rows"),
    [
        ("role = expert", [0, 3]),
        ("role == 'expert' and mouse != 'B 1'", [3]),
        ("share >= 0.5 or thirsty = false", [1, 3]),
        ("bout = 0 or bout = 1 and thirsty = true", [0]),
        ("(bout = 0 or bout = 1) and thirsty = true", [0]),
        ("(bout = 0 or bout = 1) AND thirsty = FALSE", [1]),
        ("bout<2", [0, 1]),
        ("bout <= 1.5", [0, 1]),
        ("bout>-1", [0, 1, 2, 3]),
        ("mouse = 'it''s'", [3]),
        ('mouse = "it\'s"', [3]),
        ("'a b' > 3", [3]),
        ("age > 3", [2]),
        ("day < 2024-01-15", [0, 1]),
        ("mouse = <script>", None),
        ("bout = 99999999999999999999", []),
    ],
)
def test_what_a_filter_selects(expression, rows):
    if rows is None:
        with pytest.raises(InputError, match="found '<', expected a value after ="):
            select(META, expression)
    else:
        assert_array_equal(np.flatnonzero(select(META, expression)), rows)


def test_an_empty_cell_is_unlike_everything():
    assert_array_equal(select(META, "role != expert"), [False, True, True, False])
    assert_array_equal(select(META, "role = expert or role != expert"), [True] * 4)
    assert_array_equal(select(META, "share != 0.5"), [True, False, True, True])
    assert_array_equal(select(META, "share < 10 or share >= 10"), [True, True, False, True])
    assert_array_equal(select(META, "age != 3"), [True, False, True, True])


def test_a_column_of_empty_cells_matches_nothing():
    meta = {"x": np.array([None, None], dtype=object)}
    assert not select(meta, "x = 1").any()
    assert select(meta, "x != 1").all()


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (
            "colour = red",
            "there is no column 'colour': the columns are a b, age, bout, day, mouse, role, share, thirst",
        ),
        ("role < test", "column 'role' has no order: compare it with = or !="),
        ("thirsty >= true", "column 'thirsty' has no order"),
        ("bout = many", "column 'bout' cannot be compared with 'many': give a number"),
        ("share = 1_0_", "column 'share' cannot be compared with '1_0_': give a number"),
        ("thirsty = 1", "column 'thirsty' cannot be compared with '1': give true or false"),
        ("day = soon", "column 'day' cannot be compared with 'soon': give a time"),
        ("", "found the end, expected a column"),
        ("role", "found the end, expected =, !=, <, <=, > or >= after 'role'"),
        ("role = ", "found the end, expected a value after ="),
        ("role = expert test", "unexpected 'test': join comparisons with and, or"),
        ("role = 'expert", "close every quote"),
        ("(role = expert", r"a parenthesis is not closed: add \)"),
        ("role = expert)", r"unexpected '\)'"),
        ("role ! expert", "cannot be parsed from '! expert' on"),
        ("role = expert and", "found the end, expected a column"),
        ("(" * 60 + "bout = 1" + ")" * 60, "nests more than 50 parentheses"),
        ("bout = 1 or " * 2000 + "bout = 1", "has 24008 characters"),
        ("__import__('os')", "expected =, !=, <, <=, > or >= after '__import__'"),
    ],
)
def test_what_a_filter_refuses(expression, message):
    with pytest.raises(InputError, match=message):
        select(META, expression)


def test_a_filter_is_text_over_columns_of_one_length():
    with pytest.raises(TypeError, match="the filter is 5: give a text such as 'role = expert'"):
        select(META, 5)
    with pytest.raises(InputError, match="columns: column 'a' has 2 entries, 'b' 1: give all of them one entry per"):
        select({"a": [1, 2], "b": [1]}, "b = 1")


WORDS = [
    "role",
    "bout",
    "share",
    "thirsty",
    "age",
    "day",
    "and",
    "or",
    "(",
    ")",
    "=",
    "!=",
    "<",
    "'",
    '"',
    "1",
    "x",
    "true",
]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.one_of(st.text(max_size=30), st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)))
def test_a_filter_selects_or_is_refused(expression):
    try:
        mask = select(META, expression)
    except InputError:
        return
    assert mask.shape == (4,)
    assert mask.dtype == bool
