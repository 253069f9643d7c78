"""Numbers in a terminal: enough digits that count, points below each other, and only zero looks like zero."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from messirl._formatting import format_nats, format_p_value, format_significant, percentage
from messirl.app.cli.diagnose import text_of as diagnosis_text
from messirl.app.cli.fit import text_of
from messirl.app.cli.select import text_of as select_text
from messirl.app.report.common.number_format import score, share
from messirl.inference.standard_errors import EstimationTable

EXTREME = [1e-9, 1e9, -3.2, 0.0, math.nan, math.inf, -math.inf, 0.00012345, -123456.789]


def digits(text):
    """How many digits of a number count."""
    return len(text.strip().lstrip("-+").partition("e")[0].replace(".", "").lstrip("0"))


# ------------------------------------------------------------ columns


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([-2.4941, -0.9331, -0.4111, -4.4588], ["-2.4941", "-0.9331", "-0.4111", "-4.4588"]),
        ([13.74, 1.2e-7, 8e-9], ["13.74    ", " 1.200e-07", " 8.000e-09"]),
        ([1374.2, 0.0123], ["1374", "   0.01230"]),
        ([1234567.8, -38.71, 0.012], ["1234568      ", "    -38.71   ", "      0.01200"]),
        ([0.0, 2.5], ["0    ", "2.500"]),
        ([9999.96, 1.0], ["9999.960", "   1.000"]),
        ([math.nan, 0.5], ["   nan", "0.5000"]),
        ([], []),
    ],
)
def test_a_column_is_written_as_a_reader_wants_it(values, texts):
    found = format_significant(values)
    assert [text.rstrip() for text in found] == [text.rstrip() for text in texts]


@pytest.mark.parametrize("seed", range(20))
def test_every_value_can_be_read_back_to_as_many_digits_as_were_asked_for(seed):
    random = np.random.default_rng(seed)
    values = random.normal(size=12) * 10.0 ** random.integers(-12, 12, size=12)
    for asked in (2, 4, 6):
        found = format_significant(values, asked)
        assert all(digits(text) >= asked for text in found), found
        np.testing.assert_allclose([float(text) for text in found], values, rtol=0.51 * 10.0 ** (1 - asked))


def test_columns_stay_columns_whatever_is_in_them():
    found = format_significant(EXTREME)
    assert len({len(text) for text in found}) == 1
    points = {text.index(".") for text in found if "." in text}
    assert len(points) == 1
    assert [text.strip() for text in found][3:7] == ["0", "nan", "inf", "-inf"]


# ------------------------------------------------------------ single numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-1.23456, "-1.2346"),
        (-0.00001, "-1.0e-05"),
        (0.0, "0.0000"),
        (-0.0, "0.0000"),
        (-2.5e9, "-2.500e+09"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
    ],
)
def test_a_score_has_four_decimals_and_only_zero_looks_like_zero(value, text):
    assert format_nats(value) == text


def test_a_gain_has_a_sign_unless_it_is_none():
    assert [format_nats(x, signed=True) for x in (0.5, -0.5, 3e-7, -3e-7, 0.0)] == [
        "+0.5000", "-0.5000", "+3.0e-07", "-3.0e-07", "0.0000",
    ]  # fmt: skip


def test_small_shares_and_probabilities_are_below_something_rather_than_zero():
    assert [percentage(x) for x in (0.0, 1e-9, 0.00012, 0.5, math.nan)] == [
        "0.00%",
        "<0.01%",
        "0.01%",
        "50.00%",
        "nan%",
    ]
    assert [format_p_value(x) for x in (0.0, 1e-9, 0.0432, math.nan)] == ["<0.0001", "<0.0001", "0.0432", "nan"]


def test_scores_on_the_pages_do_not_look_like_zero_either():
    assert [score(x) for x in (-1e-6, -1.5, 0.0, -math.inf)] == ["−1.0e−06", "−1.5000", "0.0000", "−∞"]
    assert [share(x) for x in (1e-7, 0.25)] == ["< 0.01 %", "25.00 %"]


# ------------------------------------------------------------ what the commands print

TINY = {"f_long": 1.23451e-7, "f_wide": -8.7654e-9, "f_usual": 13.74}


def test_the_weights_of_a_fit_have_digits_that_count():
    scores = [{"name": "MESSI", "expert": -1e-6, "held_out": -2e9, "note": ""}]
    summary = {
        "method": "MESSI",
        "trajectories": {"expert": 2},
        "iterations": 3,
        "termination": "x",
        "theta": TINY,
        "in_words": [],
    }
    said = text_of({**summary, "scores": scores}, None, {})
    assert "0.0000" not in said
    for shown, name in (("1.235e-07", "f_long"), ("-8.765e-09", "f_wide"), ("13.74", "f_usual")):
        assert re.search(rf"^ *{shown} *  {name}$", said, re.MULTILINE), said
    assert re.search(r"^ +-1.0e-06 *-2.000e\+09  MESSI$", said, re.MULTILINE)


def test_an_estimation_table_has_digits_that_count_and_straight_columns():
    values, errors = np.array([1.2e-7, -13.74, 1e9, 0.0]), np.array([8e-9, 0.3, math.nan, 2e-5])
    names = ("f_long", "a name that is longer", "c", "d")
    table = EstimationTable(names, values, errors, 1.1 * errors, np.eye(4), np.eye(4), -1.0, 10, 100, 4)
    head, *rows, foot = str(table).splitlines()
    assert len({len(row) for row in (head, *rows)}) == 1
    assert foot.startswith("log-likelihood -1.000")
    assert not re.search(r"(?<![<\d])0\.0+(?!\d)", "\n".join(rows[:3])), rows
    found = rows[0].split()
    assert [float(word) for word in found[1:6]] == pytest.approx([1.2e-7, 8e-9, 15, 8.8e-9, 13.636], rel=1e-3)
    assert found[6] == "<0.0001"
    ends = [head.index(word) + len(word) for word in ("estimate", "std err", "robust se", "robust t")]
    for row in rows:  # a number never runs across the end of its column
        assert all(row[end : end + 2].strip() == "" for end in ends), (head, row)


def test_small_gains_of_select_have_digits_that_count():
    row = {"score": -1e-7, "gain": 2e-6, "gain_low": 1e-6, "gain_high": 3e-6, "candidate": "MESSI", "method": "MESSI"}
    summary = {
        "trajectories": {"expert": 2, "unlabelled": 3}, "units": 2, "candidates": [row, row], "reason": "so",
        "chosen": {"index": 1, "candidate": "MESSI"}, "held_out": -1e-7, "next": [], "verdict": "help", "default": 0,
        "seconds": 1.0, "needed": None, "use": {"sentence": "they help"},
        "theta": TINY, "intervals": {name: [x - 1e-10, x + 1e-10] for name, x in TINY.items()},
        "in_words": [], "by": [],
    }  # fmt: skip
    said = select_text(summary, {})
    assert re.search(r"\+2.0e-06 +\[1.0e-06, 3.0e-06\] +MESSI", said)
    assert not re.search(r"[-+]?0\.0+\b", said), said
    weights = said[said.index("weight") :].splitlines()
    brackets = [(line.index("["), line.index("]")) for line in weights if "[" in line]
    assert len(brackets) == 3
    assert len(set(brackets)) == 1


def test_small_numbers_of_a_diagnosis_have_digits_that_count():
    from types import SimpleNamespace

    row = {"likeness": -1e-6, "share": 1e-8, "influence": 1.5e-9, "trajectory_id": "anna", "steps": 1200}
    row |= {"agreement": -1e-6, "agreement_low": -2e-6, "agreement_high": 1e-7}
    summary = {
        "trajectories": {"expert": 2}, "verdict": "help", "evidence": [], "most_alike": [row], "least_alike": [],
        "agreement": {"between": 0.1},
        "most_influential": [], "degrees_of_freedom": 1.0, "identified": 2, "in_words": [], "by": [],
    }  # fmt: skip
    record = SimpleNamespace(diagnosis=SimpleNamespace(directions=[]))
    said = diagnosis_text(record, summary, {})
    assert re.search(r"^ +-1.0e-06 +\[-2.0e-06, 1.0e-07\] +1,200 +<0.01% +1.50e-09  anna$", said, re.MULTILINE)
