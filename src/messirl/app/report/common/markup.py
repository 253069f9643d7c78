"""HTML in which nothing is left unescaped: whatever is not Html already is taken as text."""

from __future__ import annotations

import html
from collections.abc import Iterable


class Html(str):
    """Text that is HTML; made by `tag` and `join` only."""

    __slots__ = ()


Content = str | Html | None


def text(value: Content) -> Html:
    """The value as HTML, escaped unless it is Html already."""
    if value is None:
        return Html("")
    return value if isinstance(value, Html) else Html(html.escape(value))


def join(parts: Iterable[Content], between: str = "") -> Html:
    """Parts one after the other."""
    return Html(html.escape(between).join(text(part) for part in parts))


def tag(name: str, *content: Content, **attributes: str | None) -> Html:
    """An element; `class_` is class, `data_label` is data-label, None leaves an attribute out."""
    inside = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in ("img", "br", "col", "meta"):
        return Html(f"<{name}{inside}>")
    return Html(f"<{name}{inside}>{join(content)}</{name}>")


def table(head: Iterable[Html], rows: Iterable[Html], class_: str | None = None) -> Html:
    """A table that scrolls in its own box where the page is narrow."""
    return tag("div", tag("table", tag("thead", *head), tag("tbody", *rows), class_=class_), class_="wide")


def row(*cells: Content, head: bool = False) -> Html:
    """A row; its first cell names it."""
    first, *rest = cells
    if head:
        return tag("tr", *(tag("th", cell, scope="col") for cell in cells))
    return tag("tr", tag("th", first, scope="row"), *(tag("td", cell) for cell in rest))
