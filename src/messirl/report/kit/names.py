"""Names that people gave: any text at all, made fit for a label and for a cell."""

from __future__ import annotations

import unicodedata

from messirl.report.kit.markup import Html, tag, text

LONGEST = 48  # letters of a name that is not cut


def one_line(name: str) -> str:
    """The name without line breaks, and without what is no letter: control characters, halves of surrogates."""
    spaced = "".join(" " if letter.isspace() else letter for letter in name)
    kept = "".join(letter for letter in spaced if unicodedata.category(letter) not in ("Cc", "Cf", "Cs"))
    return " ".join(kept.split()) or "(no name)"


def short(name: str, most: int = LONGEST) -> str:
    """On one line and at most so long; the middle is cut, because names often differ at their end."""
    line = one_line(name)
    if len(line) <= most:
        return line
    end = (most - 1) // 3
    return f"{line[: most - 1 - end]}…{line[-end:]}"


def named(name: str, most: int = LONGEST) -> Html:
    """The name in a page; where it was cut, the whole of it is shown by the mouse."""
    shown, whole = short(name, most), one_line(name)
    return text(shown) if shown == whole else tag("span", shown, title=whole)
