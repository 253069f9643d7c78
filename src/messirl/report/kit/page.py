"""One page in one file, which holds everything it shows and needs no network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from messirl.report.kit.images import render, write_bytes
from messirl.report.kit.markup import Html, join, row, table, tag
from messirl.report.kit.names import named, one_line, short
from messirl.report.kit.versions import versions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

def write_page(
    place: Path, title: str, kind: str, lead: Iterable[Html], parts: Mapping[str, tuple[str, Sequence[Html]]]
) -> Path:
    """Write a page: its opening, links to its parts, and the parts.

    title, kind : the name of what it is about, and what kind of page it is; the window is called "title: kind"
    parts : anchor → heading and content; a part without content is left out
    """
    shown = {anchor: part for anchor, part in parts.items() if part[1]}
    links = [tag("a", heading, href=f"#{anchor}") for anchor, (heading, _) in shown.items()]
    body = tag("header", tag("h1", named(title, 80)), *lead, tag("nav", join(links, " ")))
    for anchor, (heading, content) in shown.items():
        part = tag("section", tag("h2", heading), "\n", join(content, "\n"), id=anchor)
        body = join([body, part], "\n")
    head = [
        Html('<meta charset="utf-8">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("title", short(title, 80) + (f": {kind}" if kind else "")),
        Html(f"<style>{CSS}</style>"),
    ]
    page = ["<!DOCTYPE html>", '<html lang="en">', "<head>", *head, "</head>", "<body>", body, "</body>", "</html>", ""]
    write_bytes(place, "\n".join(page).encode(errors="replace"))
    return place


def opening(lead: str, warnings: Iterable[str]) -> list[Html]:
    """The first paragraph of a page, and its warnings."""
    warned = [tag("p", tag("b", "Warning. "), one_line(words), class_="warning") for words in warnings]
    return [tag("p", lead, class_="lead"), *warned]


def written_with(class_: str | None = None) -> Html:
    """The versions of the packages that the page was written with."""
    return table([], [row("page written with", versions())], class_)


def drawn(
    name: str, make: Callable[[], Figure | None], folder: Path, caption: str, *, half: bool = False
) -> list[Html]:
    """The figure, drawn into the folder, with its caption and links to its files; nothing if there is no figure."""
    image = render(name, make, folder)
    if image is None:
        return []
    shown = tag("div", tag("img", src=image.uri, alt=caption.split(". ")[0]), class_="wide")
    files = tag("span", f" Files: figures/{name}.svg, .png", class_="files")
    return [tag("figure", shown, tag("figcaption", caption, files), class_="half" if half else None)]
