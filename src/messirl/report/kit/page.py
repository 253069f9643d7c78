"""One page in one file, which holds everything it shows and needs no network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from messirl.report.kit.hover import MAP_CSS
from messirl.report.kit.images import render, write_bytes
from messirl.report.kit.markup import Html, join, row, table, tag
from messirl.report.kit.names import named, one_line, short
from messirl.report.kit.versions import versions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CSS = """
:root { --ink: #1b1b1b; --soft: #5b5b5b; --line: #d9d9d9; --pale: #f6f6f4; }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; padding: 2.5rem 1.5rem 5rem; max-width: 1200px; background: #fff; color: var(--ink);
  font: 17px/1.55 Charter, "Bitstream Charter", "Sitka Text", Cambria, Georgia, serif; }
h1, h2, h3, th, td, nav, figcaption, .note, .verdict, .number, dt { font-family: system-ui, -apple-system, "Segoe UI",
  Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 2.1rem; line-height: 1.2; margin: 0 0 .6rem; letter-spacing: -.01em; }
h2 { font-size: 1.45rem; margin: 3.2rem 0 .8rem; padding-top: .5rem; border-top: 2px solid var(--ink); }
h3 { font-size: 1.08rem; margin: 2rem 0 .6rem; }
h3 small { color: var(--soft); font-weight: normal; margin-left: .3rem; }
p, dl, ul { max-width: 46rem; }
p.lead { font-size: 1.15rem; }
p.warning { border-left: 4px solid #b35900; padding: .2rem 0 .2rem .9rem; }
header p.warning { background: #fdf1e3; padding: .5rem .9rem; -webkit-print-color-adjust: exact;
  print-color-adjust: exact; }
nav { margin: 1.4rem 0; font-size: .9rem; }
nav a { color: #005a8c; margin-right: 1.1rem; white-space: nowrap; }
.wide { overflow-x: auto; margin: .8rem 0 1.4rem; }
table { border-collapse: collapse; font-size: .86rem; line-height: 1.4; }
th, td { padding: .45rem .7rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
thead th { border-bottom: 1.5px solid var(--ink); font-weight: 500; vertical-align: bottom; }
tbody th { font-weight: 500; }
table.counts td, table.counts th + th, table.results td { text-align: right; font-variant-numeric: tabular-nums; }
table.counts, table.results { white-space: nowrap; }
table.counts th.part { padding-top: 1.3rem; border-bottom: 1.5px solid var(--ink); }
table.counts th[colspan] + th { border-left: 1.5rem solid #fff; }
table.counts thead th[colspan] { text-align: center; font-weight: 600; }
table.counts thead td { border: 0; }
table.results thead th + th { text-align: right; }
table.results th, table.results td { padding-left: .5rem; padding-right: .5rem; }
table.fit { font-variant-numeric: tabular-nums; }
table.fit th, table.fit td { padding-top: .3rem; padding-bottom: .3rem; }
table.claims { width: 100%; min-width: 46rem; }
table.claims thead th { white-space: nowrap; font-size: .82rem; }
table.claims td, table.claims thead th { padding-left: .3rem; padding-right: .3rem; }
table.claims tbody th { width: 27%; min-width: 10.5rem; }
table.claims .text, table.claims .note, table.claims .number { display: block; }
.note { color: var(--soft); font-size: .78rem; line-height: 1.35; margin-top: .15rem; font-weight: normal; }
.number { white-space: nowrap; font-variant-numeric: tabular-nums; font-size: .77rem; color: #333; }
.verdict { display: inline-block; white-space: nowrap; padding: .05rem .35rem; border-radius: .25rem; font-size: .76rem;
  font-weight: 600; border: 1px solid; margin-bottom: .15rem; -webkit-print-color-adjust: exact;
  print-color-adjust: exact; }
.holds { color: #00543c; background: #dff3ec; border-color: #7cc4aa; }
.fails { color: #8a3000; background: #fde9dd; border-color: #e5a27a; }
.undecided { color: #484848; background: #f0f0f0; border-color: #c2c2c2; }
td.none { color: var(--soft); }
table.differences tbody th { max-width: 34rem; }
figure { margin: 1.6rem 0 2.4rem; }
figure .wide { margin: 0; }
figure img { display: block; width: 100%; min-width: 640px; height: auto; }
figure.half img { max-width: 620px; min-width: 320px; }
figcaption { font-size: .88rem; line-height: 1.45; color: #333; max-width: 60rem; margin-top: .6rem; }
figcaption .files { color: var(--soft); }
dt { font-weight: 600; font-size: .92rem; margin-top: .7rem; }
dd { margin: 0 0 0 1.1rem; }
pre { background: var(--pale); border: 1px solid var(--line); padding: .8rem 1rem; overflow-x: auto;
  font-size: .86rem; }
code { font-size: .92em; }
@media (max-width: 720px) {
  body { padding: 1.2rem 1rem 3rem; font-size: 16px; }
  h1 { font-size: 1.6rem; }
  table.claims { min-width: 0; }
  table.claims, table.claims tbody, table.claims tr, table.claims th, table.claims td { display: block; width: auto; }
  table.claims tbody th { width: auto; min-width: 0; }
  table.claims thead { display: none; }
  table.claims tbody tr { border-bottom: 2px solid var(--line); padding: .5rem 0; }
  table.claims tbody th, table.claims td { border: 0; padding: .25rem 0; }
  table.claims td::before { content: attr(data-label) ": "; color: var(--soft); font-size: .8rem; }
  table.claims td.none { display: none; }
  table.claims td .number { display: inline; margin-left: .3rem; }
}
@media print {
  @page { size: A4 landscape; margin: 12mm; }
  body { padding: 0; max-width: none; font-size: 10pt; }
  nav { display: none; }
  h2, h3 { break-after: avoid; }
  figure, tr, li { break-inside: avoid; }
  .wide { overflow: visible; }
  table { font-size: 7.5pt; }
  table.claims { min-width: 0; }
  table.claims tbody th { min-width: 38mm; }
  table.claims thead th { font-size: 7.5pt; }
  th, td { padding: .25rem .35rem; }
  .number, .note, .verdict { font-size: 6.8pt; }
  figure img { min-width: 0; }
}
"""


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
        Html(f"<style>{CSS}{MAP_CSS}</style>"),
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
