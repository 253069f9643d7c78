"""Page colours of the light and dark themes, and the pairs of text and background that occur.

Text needs a contrast ratio of at least 4.5 to its background (WCAG 2.1, level AA). Figures in the dark theme are
recoloured in dark_mode_svg.py.
"""

from __future__ import annotations

AA = 4.5

LIGHT = {
    "paper": "#ffffff",
    "pale": "#f6f6f4",
    "ink": "#1b1b1b",
    "quiet": "#333333",
    "soft": "#5b5b5b",
    "line": "#d9d9d9",
    "link": "#005a8c",
    "verdict": "#eef4f8",
    "edge": "#0072b2",
    "warned": "#fdf1e3",
    "warning": "#b35900",
    "holds": "#00543c",
    "holds-on": "#dff3ec",
    "holds-edge": "#7cc4aa",
    "fails": "#8a3000",
    "fails-on": "#fde9dd",
    "fails-edge": "#e5a27a",
    "undecided": "#484848",
    "undecided-on": "#f0f0f0",
    "undecided-edge": "#c2c2c2",
}
DARK = {
    "paper": "#16181b",
    "pale": "#202327",
    "ink": "#e8e6e3",
    "quiet": "#d0cec9",
    "soft": "#a9a7a2",
    "line": "#3c4046",
    "link": "#7cc0ea",
    "verdict": "#1c2a35",
    "edge": "#56b4e9",
    "warned": "#35260f",
    "warning": "#e69f00",
    "holds": "#8fe0c4",
    "holds-on": "#0f3529",
    "holds-edge": "#2e7a60",
    "fails": "#ffb48a",
    "fails-on": "#40200d",
    "fails-edge": "#8f4a22",
    "undecided": "#cfcfcf",
    "undecided-on": "#2d3034",
    "undecided-edge": "#5a5f66",
}
TEXT = (  # pairs of text and background
    ("ink", "paper"),
    ("ink", "pale"),
    ("ink", "verdict"),
    ("ink", "warned"),
    ("quiet", "paper"),
    ("soft", "paper"),
    ("soft", "verdict"),
    ("link", "paper"),
    ("link", "verdict"),
    ("link", "warned"),
    ("holds", "holds-on"),
    ("fails", "fails-on"),
    ("undecided", "undecided-on"),
)


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio (L + 0.05) / (L' + 0.05) of two colours `#rrggbb`, with L ≥ L' their luminances."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def css_variables(colours: dict[str, str]) -> str:
    """Return the colours as CSS variable declarations."""
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
