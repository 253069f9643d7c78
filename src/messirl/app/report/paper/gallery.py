"""All figures of a reproduction, drawn, saved, and shown with their captions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from messirl.app.report.common.html_page import draw_figure
from messirl.app.report.common.markup import Html, join, tag
from messirl.app.report.common.method_style import domain_name
from messirl.app.report.paper import captions
from messirl.app.report.paper.paper_figures import (
    PANELS,
    domains_figure,
    em_figure,
    exact_figure,
    gain_figure,
    paper_figure,
)
from messirl.paper.experiments.curves import Curves

KINDS = (  # kinds of figures: the end of the file name, the function that draws it, and its caption
    ("", paper_figure, captions.paper_caption),
    ("-gain", gain_figure, captions.gain_caption),
    ("-em", em_figure, captions.em_caption),
    ("-exact", exact_figure, captions.exact_caption),
)


def gallery(curves: Curves, domains: Sequence[str], folder: Path) -> Html:
    """Draw all figures that have data, save them into the folder, and show them domain by domain."""
    out = draw_figure("domains", lambda: domains_figure(domains), folder, captions.domains_caption(domains))
    for domain, name in file_names(domains).items():
        small = len([axis for axis in PANELS if curves.methods(domain, axis.figure)]) == 1
        shown: list[Html] = []
        for suffix, make, caption in KINDS:
            text = caption(curves, domain)
            shown += draw_figure(name + suffix, partial(make, curves, domain), folder, text, half=small)
        missing = tag("p", "These results have no data for a figure of this domain.")
        out += [tag("h3", domain_name(domain)), *(shown or [missing])]
    return join(out, "\n")


def file_names(domains: Sequence[str]) -> dict[str, str]:
    """Return a file name for each domain, all different and safe in every file system."""
    out: dict[str, str] = {}
    for domain in domains:
        name = re.sub(r"[^a-z0-9]+", "-", domain.lower()).strip("-") or "domain"
        while name in out.values():
            name += "-again"
        out[domain] = name
    return out
