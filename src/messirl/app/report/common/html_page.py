"""Self-contained HTML pages: one file that needs no network."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from messirl.app.report.common.css import CSS
from messirl.app.report.common.feature_labels import name_html, one_line, shorten
from messirl.app.report.common.glossary import definition_list, find_terms, link_terms
from messirl.app.report.common.images import render, write_bytes
from messirl.app.report.common.markup import Html, join, row, table, tag
from messirl.app.report.common.number_format import as_sentence
from messirl.app.report.common.svg_tooltips import MAP_CSS
from messirl.app.report.common.versions import versions

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_page(
    place: Path, title: str, kind: str, lead: Iterable[Html], parts: Mapping[str, tuple[str, Sequence[Html]]]
) -> Path:
    """Write a page: its opening, links to its sections, the sections, and a glossary of the terms that occur.

    title, kind : the subject of the page and its kind; the window title is "title: kind"
    parts : anchor → heading and content; a section without content is left out
    """
    shown = {anchor: part for anchor, part in parts.items() if part[1]}
    opened = join(lead, "\n")
    terms = find_terms(_text(join([opened, *(piece for _, content in shown.values() for piece in content)], " ")))
    if terms:
        shown["glossary"] = ("Glossary", [definition_list(terms)])
    links = [tag("a", heading, href=f"#{anchor}") for anchor, (heading, _) in shown.items()]
    heading = join([name_html(title, 80), tag("small", kind) if kind else None])
    body = tag("header", tag("h1", heading), opened, tag("nav", join(links, " ")))
    for anchor, (called, content) in shown.items():
        part = tag("section", tag("h2", called), "\n", join(content, "\n"), id=anchor)
        body = join([body, part], "\n")
    head = [
        Html('<meta charset="utf-8">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("title", shorten(title, 80) + (f": {kind}" if kind else "")),
        Html(f"<style>{CSS}{MAP_CSS}</style>"),
    ]
    page = ["<!DOCTYPE html>", '<html lang="en">', "<head>", *head, "</head>", "<body>", body, "</body>", "</html>", ""]
    write_bytes(place, "\n".join(page).encode(errors="replace"))
    return place


def opening(
    said: Sequence[str], pictures: Sequence[Html], lead: str, warnings: Iterable[str], roles: Html | None = None
) -> list[Html]:
    """Return the top of a page: the verdict in words, its figures, the lead paragraph and the warnings.

    said : sentences of the verdict
    roles : definitions that the figures need
    """
    seen = set[str]()
    told = [tag("p", link_terms(as_sentence(one_line(text)), seen)) for text in said]
    words = [tag("div", *told, class_="said")] if said else []
    shown = [tag("div", *pictures, class_="panels")] if pictures else []
    warned = [
        tag("p", tag("b", "Warning. "), _stopped(as_sentence(one_line(text).replace("`", ""))), class_="warning")
        for text in warnings
        for text in warnings
    ]
    return [
        *words,
        *([] if roles is None else [roles]),
        *shown,
        tag("p", link_terms(lead, seen), class_=None if said else "lead"),
        *warned,
    ]


def _stopped(sentence: str) -> str:
    """Add a full stop unless the sentence ends with a punctuation mark."""
    return sentence if sentence.endswith((".", "!", "?", ":", "…")) else f"{sentence}."


def written_with(class_: str | None = None) -> Html:
    """Return a table of the package versions that wrote the page."""
    return table([], [row("page written with", versions())], class_)


def rerun(command: str) -> list[Html]:
    """Return the command that makes the page again, if it is known."""
    return [tag("pre", tag("code", command))] if command else []


def draw_figure(
    name: str, make: Callable[[], Figure | None], folder: Path, caption: str, *, half: bool = False, small: bool = False
) -> list[Html]:
    """Draw a figure into the folder and return it with its caption; an empty list if there is nothing to draw.

    half, small : whether it takes half the page width, or fits the width of a phone
    """
    image = render(name, make, folder)
    if image is None:
        return []
    shown = tag("div", tag("img", src=image.uri, alt=caption.split(". ")[0]), class_="wide")
    files = tag("span", f" Files: figures/{name}.svg, .png", class_="files")
    class_ = "small" if small else "half" if half else None
    return [tag("figure", shown, tag("figcaption", link_terms(caption), files), class_=class_)]


def _text(content: Html) -> str:
    """Return the visible text of HTML."""
    return html.unescape(re.sub(r"<[^>]*>", " ", content))
