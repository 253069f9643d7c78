"""What a misspelt word was meant to be."""

from __future__ import annotations

import pytest

from messirl._text import closest_word, count_noun, did_you_mean

COMMANDS = ("fit", "select", "diagnose", "evaluate", "sample", "show", "check", "convert", "reproduce")


@pytest.mark.parametrize(
    ("word", "known", "said"),
    [
        ("fitt", COMMANDS, "; did you mean 'fit'?"),
        ("slect", COMMANDS, "; did you mean 'select'?"),
        ("State", ("state", "step"), "; did you mean 'state'?"),
        (" state ", ("state",), "; did you mean 'state'?"),
        ("zzz", COMMANDS, ""),
        ("fit", (), ""),
    ],
)
def test_a_misspelt_word_is_answered_with_the_one_it_resembles(word, known, said):
    assert did_you_mean(word, known) == said


def test_a_synonym_is_known_only_where_its_word_is():
    assert closest_word("gamma", ("discount", "horizon"), {"gamma": "discount"}) == "discount"
    assert closest_word("gamma", ("horizon",), {"gamma": "discount"}) is None


@pytest.mark.parametrize(("n", "said"), [(0, "0 places"), (1, "1 place"), (1200, "1,200 places")])
def test_one_thing_is_not_several(n, said):
    assert count_noun(n, "place") == said
