"""The text of all pages by section, as a script that the search loads when it is first used, from a folder too."""

from __future__ import annotations

import html
import json
import re
from typing import NamedTuple

HEADING = re.compile(r'<h([1-4]) id="([^"]*)"[^>]*>(.*?)</h\1>', re.DOTALL)


class Section(NamedTuple):
    address: str
    page: str
    title: str
    text: str


def plain(marked: str) -> str:
    """Text without its marks, in one line."""
    marked = re.sub(r"<annotation.*?</annotation>", "", marked, flags=re.DOTALL)
    inline = re.sub(r"</?(?:a|b|em|i|code|span|strong|small|m[a-z]+)\b[^>]*>", "", marked)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", inline)).split())


def sections(content: str, address: str, page: str) -> list[Section]:
    """A page, cut at its headings."""
    found = list(HEADING.finditer(content))
    if not found:
        return [Section(address, page, page, plain(content))]
    ends = [heading.start() for heading in found[1:]] + [len(content)]
    out = []
    for heading, end in zip(found, ends, strict=True):
        title = plain(heading[3])
        where = address if heading[1] == "1" else f"{address}#{heading[2]}"
        out.append(Section(where, page, title, plain(content[heading.end() : end])))
    return out


def words(of: list[Section]) -> str:
    """The script."""
    return f"window.messirlWords = {json.dumps(of, ensure_ascii=False, separators=(',', ':'))};\n"
