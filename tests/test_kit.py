"""What pages share: colours that can be read by day and by night, and words that are explained where they occur."""

from __future__ import annotations

import re

import pytest
from pages import Page

from messirl.app.report.common.colours import AA, DARK, LIGHT, TEXT, contrast
from messirl.app.report.common.css import CSS, LAYOUT
from messirl.app.report.common.dark_mode_svg import COLOURS, add_dark_mode
from messirl.app.report.common.glossary import TERMS, anchor, find_terms, link_terms
from messirl.app.report.common.html_page import opening, write_page
from messirl.app.report.common.markup import tag
from messirl.app.report.common.method_style import STYLES
from messirl.estimators.registry import METHODS

# ------------------------------------------------------------ colours


def test_contrast_is_that_of_the_guidelines():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)  # just below what text needs
    assert contrast("#ffffff", "#777777") == contrast("#777777", "#ffffff")


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("text", "on"), TEXT)
def test_text_can_be_read_on_what_it_stands_on(colours, text, on):
    assert contrast(colours[text], colours[on]) >= AA


def test_every_colour_of_text_in_the_style_sheet_is_among_those_that_are_checked():
    used = set(re.findall(r"(?<![\w-])color: var\(--([\w-]+)\)", LAYOUT))
    assert used == {text for text, _ in TEXT} - {"link"} | {"link"}
    behind = set(re.findall(r"background: var\(--([\w-]+)\)", LAYOUT))
    assert behind == {on for _, on in TEXT}


def test_pictures_follow_the_page_by_night_and_their_lines_can_be_seen_there():
    grounds = {"#ffffff", "#e4e4e4", "#f4f4f2", "#f2f2f2", "#e4e4e0", "#b8b8b8"}  # paper, grids, ground, roads
    for day, night in COLOURS.items():
        assert day in grounds or contrast(night, DARK["paper"]) >= 3.0, day
    svg = b'<?xml version="1.0"?><svg width="9"><path style="fill: #ffffff"/></svg>'
    drawn = add_dark_mode(svg).decode()
    assert drawn.startswith('<?xml version="1.0"?><svg width="9"><style>@media screen and (prefers-color-scheme: dark)')
    assert f'[style*="fill: #ffffff"]{{fill:{DARK["paper"]} !important}}' in drawn
    assert drawn.endswith('<path style="fill: #ffffff"/></svg>'), "by day it is what it was"


def test_no_colour_is_written_into_the_layout():
    assert set(re.findall(r"#[0-9a-fA-F]{3,6}\b", LAYOUT)) == set()
    assert LIGHT.keys() == DARK.keys()
    assert set(re.findall(r"var\(--([\w-]+)\)", LAYOUT)) <= LIGHT.keys()
    assert "prefers-color-scheme: dark" in CSS
    assert "@media print" in CSS


# ------------------------------------------------------------ words


def test_every_method_that_pages_name_is_explained():
    for label in [method.label for method in METHODS.values()] + [one.label for one in STYLES.values()]:
        assert find_terms(f"by {label} on all") != [], label


def test_anchors_are_all_different_and_explanations_are_sentences():
    assert len({anchor(term) for term in TERMS}) == len(TERMS)
    for term, text in TERMS.items():
        assert text.endswith("."), term
        assert len(text) < 300, term


def test_the_first_occurrence_of_a_term_is_a_link_and_everything_else_is_text():
    found = link_terms("0.1 nats per step, <b>5 nats per step</b>: likeness")
    assert found.count('href="#term-nats-per-step"') == 1
    assert found.count('href="#term-agreement-with-the-expert-policy"') == 1
    assert "&lt;b&gt;5 nats per step&lt;/b&gt;" in found
    assert link_terms("nothing here") == "nothing here"
    seen = {"agreement with the expert policy"}
    assert "href" not in link_terms("likeness", seen)


def test_a_longer_term_is_not_taken_for_a_shorter_one():
    assert find_terms("light pooling with L2 helps") == ["light pooling"]
    assert find_terms("by L2, standardised") == ["L2, standardised"]
    assert find_terms("MESSI(μ1)") == ["MESSI", "μ1"]
    assert find_terms("the expertise of unlabelledness") == []


def test_a_page_opens_with_the_verdict_then_the_picture_and_ends_with_the_words_that_occur(tmp_path):
    first = opening(["using them hurt: 0.1 nats per step worse"], [tag("figure", "picture")], "what was done", ["mind"])
    place = write_page(tmp_path / "report.html", "<title>", "kind", first, {"a": ("Part", [tag("p", "likeness")])})
    page, text = Page(place), place.read_text(encoding="utf-8")
    order = [text.index(words) for words in ("Using them hurt", "<figure>", "what was done", "Warning. ", "<nav>")]
    assert order == sorted(order)
    explained = [a["id"] for a in page.of("dt")]
    assert explained == ["term-nats-per-step", "term-agreement-with-the-expert-policy"]
    assert {a["href"][1:] for a in page.of("a")} == {"a", "glossary", "term-nats-per-step"}


def test_a_page_without_any_such_word_has_no_glossary(tmp_path):
    place = write_page(tmp_path / "report.html", "t", "", opening([], [], "lead", []), {})
    assert "Glossary" not in place.read_text(encoding="utf-8")
