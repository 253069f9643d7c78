"""Suggestions for misspelt words, and lists of names in sentences."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

LIKE = 0.6  # least similarity of two words, as difflib measures it


def closest_word(word: str, known: Iterable[str], synonyms: Mapping[str, str] | None = None) -> str | None:
    """Return the known word that resembles `word` most, or None: in another case, a synonym, or similar letters."""
    import difflib

    there = list(known)
    lowered = {name.lower(): name for name in reversed(there)}
    low = word.strip().lower()
    if low in lowered:
        return lowered[low]
    other = (synonyms or {}).get(low)
    if other in there:
        return other
    close = difflib.get_close_matches(low, list(lowered), n=1, cutoff=LIKE)
    return lowered[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str], synonyms: Mapping[str, str] | None = None) -> str:
    """Return the end of a sentence, `; did you mean 'fit'?`, or nothing if no known word resembles it."""
    found = closest_word(word, known, synonyms)
    return "" if found is None else f"; did you mean {found!r}?"


def join_names(names: Sequence[str]) -> str:
    """Return names as a list in a sentence: `one, two and three`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def quote_name(name: str) -> str:
    """Return the name, in quotation marks if it contains a comma or an `and` that could be misread."""
    return f'"{name}"' if "," in name or " and " in name else name


def count_noun(n: int, noun: str) -> str:
    """Return a number with its noun: `1 place`, `1,200 places`, `2 trajectories`."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"
