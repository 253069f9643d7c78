"""Plain text of the program as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable


def safe(text: str) -> str:
    """Text in which nothing but `code` and *emphasis* means anything to Markdown."""
    parts = re.split(r"(``?[^`]+``?)", text)
    return "".join(part if i % 2 else _escaped(part) for i, part in enumerate(parts))


def _escaped(text: str) -> str:
    text = re.sub(r"[<>&{}]", lambda found: f"&#{ord(found[0])};", text)
    text = re.sub(r"([\\_\[\]$|])", r"\\\1", text)
    kept = re.split(r"((?<![\w*])\*\w(?:[^*\n]*\w)?\*(?![\w*]))", text)
    return "".join(part if i % 2 else part.replace("*", "\\*") for i, part in enumerate(kept))


def definitions(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """A list of terms and what they mean, both Markdown of one paragraph."""
    lines: list[str] = []
    for term, meaning in pairs:
        lines += [term, f":   {meaning or '–'}", ""]
    return lines
