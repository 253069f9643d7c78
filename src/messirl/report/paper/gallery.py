"""All figures of a reproduction: drawn, saved, and shown with their captions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from messirl.experiments.curves import Curves
from messirl.report.kit.images import Image, render
from messirl.report.kit.markup import Html, join, tag
from messirl.report.kit.page import figure
from messirl.report.kit.style import domain_name
from messirl.report.paper import captions
from messirl.report.paper.figures import PANELS, domains_figure, em_figure, exact_figure, gain_figure, paper_figure


def gallery(curves: Curves, domains: Sequence[str], folder: Path) -> Html:
    """Draw what the table has, save it into the folder, and show it domain by domain."""
    out: list[Html] = []
    picture = render("domains", lambda: domains_figure(domains), folder)
    if picture is not None:
        out.append(figure(picture, captions.domains_caption(domains)))
    for domain, name in file_names(domains).items():
        small = len([axis for axis in PANELS if curves.methods(domain, axis.figure)]) == 1
        out.append(tag("h3", domain_name(domain)))
        drawn = _drawn(curves, domain, name, folder)
        out += [figure(image, caption, half=small) for image, caption in drawn]
        if not drawn:
            out.append(tag("p", "These results have no figure for this domain."))
    return join(out, "\n")


def _drawn(curves: Curves, domain: str, name: str, folder: Path) -> list[tuple[Image, str]]:
    """The figures of one domain that there is data for."""
    out = []
    for suffix, make, caption in (
        ("", paper_figure, captions.paper_caption),
        ("-gain", gain_figure, captions.gain_caption),
        ("-em", em_figure, captions.em_caption),
        ("-exact", exact_figure, captions.exact_caption),
    ):
        image = render(name + suffix, partial(make, curves, domain), folder)
        if image is not None:
            out.append((image, caption(curves, domain)))
    return out


def file_names(domains: Sequence[str]) -> dict[str, str]:
    """A name for each domain that is safe in every file system, and no two alike."""
    out: dict[str, str] = {}
    for domain in domains:
        name = re.sub(r"[^a-z0-9]+", "-", domain.lower()).strip("-") or "domain"
        while name in out.values():
            name += "-again"
        out[domain] = name
    return out
