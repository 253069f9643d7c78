"""Sanitised user names, which may be any text, for labels and table cells."""

from __future__ import annotations

import unicodedata

from messirl.app.report.common.markup import Html, tag, text

LONGEST = 48  # characters of a name


def one_line(name: str) -> str:
    """Return the name without line breaks, control characters and lone surrogates."""
    spaced = "".join(" " if letter.isspace() else letter for letter in name)
    kept = "".join(letter for letter in spaced if unicodedata.category(letter) not in ("Cc", "Cf", "Cs"))
    return " ".join(kept.split()) or "(no name)"


def shorten(name: str, most: int = LONGEST) -> str:
    """Shorten a name to one line of at most `most` characters; the middle is cut, as names often differ at the end."""
    line = one_line(name)
    if len(line) <= most:
        return line
    end = (most - 1) // 3
    return f"{line[: most - 1 - end]}…{line[-end:]}"


def name_html(name: str, most: int = LONGEST) -> Html:
    """Return the name as HTML; a shortened name has the full one as a tooltip."""
    shown, whole = shorten(name, most), one_line(name)
    return text(shown) if shown == whole else tag("span", shown, title=whole)
