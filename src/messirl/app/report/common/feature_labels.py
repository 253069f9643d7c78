"""Names from the user, which may be any text, made fit for labels and table cells."""

from __future__ import annotations

import unicodedata

from messirl.app.report.common.markup import Html, tag, text

LONGEST = 48  # characters from which a name is shortened


def one_line(name: str) -> str:
    """The name without line breaks, control characters and lone surrogates."""
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
    """The name for a page; if it was cut, pointing at it shows the whole."""
    shown, whole = short(name, most), one_line(name)
    return text(shown) if shown == whole else tag("span", shown, title=whole)
