"""Tables to paste: what they hold is what was estimated, whatever the features are called."""

from __future__ import annotations

import csv
import io
import re
import string
import unicodedata
from html.parser import HTMLParser

import numpy as np
from latex import read
from numpy.testing import assert_allclose

from messirl import weight_ratio
from messirl.inference import EstimationTable
from messirl.inference.latex import ESCAPED, KNOWN

HOSTILE = ("<script>alert(1)</script>", 'a_b & c% "d"', r"\input{x}$#^~|", "θ, é\nnext", "[2pt]* {")


def made(names=HOSTILE) -> EstimationTable:
    """Estimates of all sizes and kinds, with known standard errors."""
    d = len(names)
    theta = np.array([-2.4941, 0.5, 1.25e-7, 3.0, -12.0])[:d]
    robust = np.abs(theta) / np.array([5.0, 1.0, 2.2, np.nan, 2.9])[:d]
    square = np.diag(np.nan_to_num(robust, nan=1.0) ** 2)
    return EstimationTable(tuple(names), theta, robust / 2, robust, square / 4, square, -6302.9294, 1832, 37167, d)


class Cells(HTMLParser):
    """Rows of cells as a browser shows them, and every tag on the way."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.rows, self.tags, self.open = [], set(), []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data


def test_csv_has_every_digit_and_every_name_as_it_is():
    table = made()
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert [row["name"] for row in rows] == list(HOSTILE)
    for name in ("estimate", "std_error", "robust_t", "p"):
        there = [float(row[name] or "nan") for row in rows]
        assert_allclose(there, getattr(table, name), rtol=1e-15)
    assert [row["outer_std_error"] for row in rows] == [""] * 5
    low, high = float(rows[0]["low"]), float(rows[0]["high"])
    assert_allclose([(low + high) / 2, (high - low) / 2], [-2.4941, 1.959964 * 2.4941 / 5], rtol=1e-6)


def test_csv_has_ratios_below_without_a_t():
    table = made(("a", "b"))
    ratio = weight_ratio(table, "a", "b")
    last = list(csv.DictReader(io.StringIO(table.to_csv([ratio]))))[-1]
    assert last["name"] == "a/b"
    assert float(last["estimate"]) == ratio.value
    assert float(last["high"]) == ratio.high
    assert last["t"] == last["p"] == ""


def test_html_shows_hostile_names_and_runs_none_of_them():
    text = made().to_html(stars=True)
    assert text.isascii()
    found = Cells(text)
    assert found.tags == {"table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td", "sup"}
    assert [row[0] for row in found.rows[1:6]] == [name.replace("\n", " ") for name in HOSTILE]
    assert {len(row) for row in found.rows} == {7}
    assert found.rows[1][1] == "−2.4941***"
    assert found.rows[4][4] == "–"
    assert found.rows[6][:2] == ["Log-likelihood", "−6302.929"]


def test_a_ratio_spans_the_columns_that_it_has_no_numbers_for():
    table = made(("a", "b"))
    ratio = weight_ratio(table, "a", "b")
    html, latex = table.to_html([ratio]), table.to_latex([ratio])
    row = next(row for row in Cells(html).rows if row[0] == "a/b")
    assert len(row) == 6
    assert row[-1].startswith("95 %: [")
    line = next(line for line in latex.splitlines() if line.startswith("a/b &"))
    assert line.count("&") == 5
    assert r"\multicolumn{2}{r}{95\,\%: [$" in line


def test_latex_escapes_whatever_means_something_to_it():
    lines = made().to_latex().splitlines()[5:10]
    assert [line.split(" & ")[0] for line in lines] == [
        r"\textless{}script\textgreater{}alert(1)\textless{}/script\textgreater{}",
        r"a\_b \& c\% ''d''",
        r"\textbackslash{}input\{x\}\$\#\textasciicircum{}\textasciitilde{}\textbar{}",
        r"$\theta$, é next",
        r"{[}2pt]{*} \{",
    ]
    assert lines[2].split(" & ")[1] == r"$1.250\times 10^{-7}$"
    assert lines[3].split(" & ")[4] == "--"


def test_stars_are_there_only_where_they_are_asked_for():
    table = made()
    assert "*" not in made(("a", "b")).to_latex() + made(("a", "b")).to_html()
    starred = read(table.to_latex(stars=True))
    assert [len(re.findall(r"\*", row[1])) for row in starred[1:6]] == [3, 0, 1, 0, 2]
    assert r"$^{*}\,p<0.05$" in table.to_latex(stars=True)


def test_latex_says_what_it_needs_beside_booktabs():
    def first(*names):
        return made(names).to_latex().splitlines()[0]

    plain = r"% needs \usepackage{booktabs}"
    assert first("café, Straße", "ναί: Ω, ς, ΐ", "x₁² ≤ 5 € → −1") == plain
    assert first("„Łódź“, ząb") == rf"{plain} and \usepackage[T1]{{fontenc}}"
    assert first("метро", "駅") == rf"{plain}, and XeLaTeX or LuaLaTeX with a font that has е м о р т 駅"


def test_greek_letters_with_their_accents_and_common_signs_are_mathematics():
    text = made(("ΐ ά Α ο", "x₁² ≤ −1 → ∞")).to_latex()
    assert r"$\acute{\ddot{\iota}}$ $\acute{\alpha}$ $\mathrm{A}$ $o$ &" in text
    assert r"x$_{1}$$^{2}$ $\le$ $-$1 $\rightarrow$ $\infty$ &" in text
    assert made(("e\N{COMBINING ACUTE ACCENT}",)).to_latex() == made(("é",)).to_latex()


def test_latex_is_read_back_as_what_was_meant_whatever_stands_in_a_name():
    pairs = [f"{a}{b}" for a in string.punctuation for b in string.punctuation]
    ours = sorted(ESCAPED.keys() | KNOWN, key=ord)
    names = [
        *HOSTILE,
        *(f"{sign}{sign}2" for sign in string.punctuation),
        "".join(pairs),
        " ".join(ours),
        "".join(ours),
    ]
    names = [unicodedata.normalize("NFC", name) for name in names]
    d = len(names)
    table = EstimationTable(tuple(names), *np.ones((3, d)), *np.broadcast_to(np.eye(2), (2, 2, 2)), -1.0, 2, 3, d)
    rows = read(table.to_latex())[1 : d + 1]
    for name, row in zip(names, rows, strict=True):
        meant = name.replace('"', "''").replace("\n", " ")
        if meant.isascii():
            assert row[0] == meant.strip()


def test_latex_rows_have_a_cell_for_every_column_with_ratios_stars_and_powers_of_ten():
    table = made()
    rows = read(table.to_latex([weight_ratio(table, HOSTILE[0], HOSTILE[1])], stars=True))
    assert rows[3][1] == "1.250×10-7*"
    assert rows[6][-1] == rows[6][-2]
    assert rows[6][-1].startswith("95 %: [")
    assert rows[-1] == ["*** p<0.001, ** p<0.01, * p<0.05"] * 7
