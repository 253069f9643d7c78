"""Plot style: label, colour, dashes and marker of every method, and matplotlib settings.

The colours are the colour-blind safe palette of Okabe and Ito; dashes and markers distinguish lines in black and
white. EM's η is a quantity, so its lines run from light to dark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from messirl.estimators.registry import METHODS
from messirl.paper.experiments.paper_settings import AGAINST, EXACT

MAIN = ("MaxEnt", "MESSIMAX", "MESSI-mu1", "MESSI-mu2", "MESSI-mu3")
ANCHORS = ("MaxEnt", "MESSI-mu1")  # repeated beside the further baselines
DOMAIN_NAMES = {"highway": "Highway", "gridworld": "Grid-world", "pit": "Pit", "highway-far": "Highway, far sight"}


@dataclass(frozen=True)
class MethodStyle:
    """Label and line style of one method."""

    label: str
    colour: str
    marker: str
    dashes: Any = "-"
    width: float = 1.4

    @property
    def line(self) -> dict[str, Any]:
        """The line style as matplotlib arguments."""
        return {"color": self.colour, "linestyle": self.dashes, "linewidth": self.width, "marker": self.marker}


STYLES = {
    "MaxEnt": MethodStyle(METHODS["MaxEnt"].label, "#000000", "x", (0, (5, 1.5))),
    "MESSIMAX": MethodStyle("MESSIMAX", "#0072B2", "s"),
    "MESSI-mu1": MethodStyle("MESSI(μ1)", "#D55E00", "o"),
    "MESSI-mu2": MethodStyle("MESSI(μ2)", "#009E73", "^", (0, (6, 1.5, 1, 1.5))),
    "MESSI-mu3": MethodStyle("MESSI(μ3)", "#CC79A7", "D", (0, (1.5, 1))),
    "Ridge": MethodStyle(METHODS["Ridge"].label, "#E69F00", "+", (0, (4, 1.5)), 1.0),
    "RidgeStd": MethodStyle(METHODS["RidgeStd"].label, "#56B4E9", "P", (0, (5, 1.5, 1, 1.5)), 1.0),
    "Complete": MethodStyle(METHODS["Complete"].label, "#555555", "v", (0, (3, 1, 1, 1, 1, 1)), 1.0),
    "Pooling": MethodStyle(METHODS["Pooling"].label, "#999999", "d", "-", 0.8),
}
EM_METHOD = re.compile(r"EM-(\d+)(-mu2)?")
EM_MARKERS = "<>*pH"
EM_DASHES: tuple[Any, ...] = ((0, (1.2, 1)), (0, (5, 1.2, 1.2, 1.2)), (0, (3, 1.2)), (0, (7, 1.2)), "-")
EM_COLOURS = ("#F4A6B8", "#E56AA6", "#BE2F8E", "#7F1079", "#3D0052")  # light to dark
UNKNOWN = ("#777777", "*", (0, (2, 2)))


def style_of(method: str, etas: tuple[int, ...] = ()) -> MethodStyle:
    """Return the style of a method, for either solver. `etas`: all η in the figure, coloured from light to dark."""
    plain = method.removesuffix(EXACT)
    if plain in STYLES:
        return STYLES[plain]
    found = EM_METHOD.fullmatch(plain)
    if found is None:
        colour, marker, dashes = UNKNOWN
        return MethodStyle(plain, colour, marker, dashes, 0.9)
    eta = int(found[1])
    rank = etas.index(eta) if eta in etas else 0
    place = round(rank * (len(EM_COLOURS) - 1) / max(len(etas) - 1, 1))
    return MethodStyle(f"{eta}-{METHODS['EM'].label}", EM_COLOURS[place], EM_MARKERS[place], EM_DASHES[place], 1.0)


def eta_of(method: str) -> int | None:
    """Return η of an EM method; None for any other."""
    found = EM_METHOD.fullmatch(method)
    return None if found is None else int(found[1])


def domain_name(domain: str) -> str:
    """Return the display name of a domain, or of a comparison `a against b` of two domains."""
    first, against, second = domain.partition(AGAINST)
    if against:
        return domain_name(first) + AGAINST + domain_name(second).lower()
    return DOMAIN_NAMES.get(domain, domain)


def sort_domains(domains: list[str]) -> list[str]:
    """Sort domains: in the order of the paper, then by name."""
    known = list(DOMAIN_NAMES)
    return sorted(domains, key=lambda d: (known.index(d) if d in known else len(known), d))


# For a two-column figure in a paper: 7.2 inches wide, type of 7 to 8 points.
WIDTH = 7.2
RC: dict[str, Any] = {
    "font.size": 7.5,
    "axes.labelsize": 8,
    "axes.titlesize": 8.5,
    "axes.titleweight": "bold",
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7.5,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "lines.markersize": 3.2,
    "lines.markeredgewidth": 0.8,
    "legend.frameon": False,
    "legend.handlelength": 3.2,
    "legend.columnspacing": 1.6,
    "svg.hashsalt": "messirl",  # the same ids inside an SVG every time
    "svg.fonttype": "path",  # the same glyphs on every screen
    "text.parse_math": False,  # names may contain dollar signs
}
