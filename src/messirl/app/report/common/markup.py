"""HTML elements with automatic escaping: everything that is not `Html` is escaped as text."""

from __future__ import annotations

import html
from collections.abc import Iterable


class Html(str):
    """A string that is safe HTML; made by `tag` and `join` only."""

    __slots__ = ()


Content = str | Html | None


def text(value: Content) -> Html:
    """Return the value as HTML, escaped unless it is Html already."""
    if value is None:
        return Html("")
    return value if isinstance(value, Html) else Html(html.escape(value))


def join(parts: Iterable[Content], between: str = "") -> Html:
    """Concatenate parts as HTML."""
    return Html(html.escape(between).join(text(part) for part in parts))


def tag(name: str, *content: Content, **attributes: str | None) -> Html:
    """Return an element; `class_` is class, `data_label` is data-label, None omits an attribute."""
    inside = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in ("img", "br", "col", "meta"):
        return Html(f"<{name}{inside}>")
    return Html(f"<{name}{inside}>{join(content)}</{name}>")


def table(head: Iterable[Html], rows: Iterable[Html], class_: str | None = None) -> Html:
    """Return a table in a box that scrolls where the page is narrow."""
    return tag("div", tag("table", tag("thead", *head), tag("tbody", *rows), class_=class_), class_="wide")


def row(*cells: Content, head: bool = False) -> Html:
    """Return a table row; its first cell is a header."""
    first, *rest = cells
    if head:
        return tag("tr", *(tag("th", cell, scope="col") for cell in cells))
    return tag("tr", tag("th", first, scope="row"), *(tag("td", cell) for cell in rest))
