"""Arguments: what is a number, what is a whole number, and what is said of anything else."""

from __future__ import annotations

import re

import numpy as np
import pytest

from messirl._checks import check_fraction, check_integer, check_number, is_number, is_whole


@pytest.mark.parametrize(("value", "a_whole", "a_number"), [(3, True, True), (np.int8(3), True, True)])
@pytest.mark.parametrize("negative", [False, True])
def test_numbers_of_numpy_are_numbers(value, a_whole, a_number, negative):
    value = -value if negative else value
    assert (is_whole(value), is_number(value)) == (a_whole, a_number)


@pytest.mark.parametrize("value", [3.0, np.float32(0.5), float("nan")])
def test_decimals_are_numbers_and_not_whole_ones(value):
    assert not is_whole(value)
    assert is_number(value)


@pytest.mark.parametrize("value", [True, np.True_, "3", None, [3], np.array([3])])
def test_flags_text_and_arrays_are_no_numbers(value):
    assert not is_whole(value)
    assert not is_number(value)


@pytest.mark.parametrize(("value", "least"), [(0, 1), (1.0, 1), (True, 1), (1, 2), (None, 0)])
def test_what_is_not_whole_or_too_small_is_named(value, least):
    with pytest.raises(ValueError, match=re.escape(f"n={value!r}: it must be a whole number >= {least}")):
        check_integer("n", value, least)
    assert check_integer("n", np.int64(least), least) == least


@pytest.mark.parametrize(
    ("value", "shown"), [("95%", "'95%'"), (95, "95"), (1.0, "1"), (np.nan, "nan"), (None, "None")]
)
def test_a_fraction_is_between_0_and_1(value, shown):
    with pytest.raises(ValueError, match=f"level={shown}: it must be between 0 and 1, for example 0.95"):
        check_fraction("level", value)
    assert check_fraction("level", np.float64(0.95)) == 0.95


def test_a_number_lies_within_its_limits():
    assert check_number("tol", 0, least=0.0) == 0.0
    with pytest.raises(ValueError, match="tol=0: it must be finite and > 0"):
        check_number("tol", 0, above=0.0)
    with pytest.raises(ValueError, match="tol=inf: it must be finite and >= 1"):
        check_number("tol", np.inf, least=1.0)
    with pytest.raises(TypeError, match="tol='1': it must be a number"):
        check_number("tol", "1", least=0.0)
