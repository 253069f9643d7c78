"""Dark theme of figures: a style sheet inside the SVG that recolours background, lines and text.

Map colours that encode a number do not change. Files on disk have the light theme.
"""

from __future__ import annotations

from messirl.app.report.common.colours import DARK

COLOURS = {  # light theme → dark theme, where lines have a contrast of at least 3 to the background
    "#ffffff": DARK["paper"],
    "#000000": DARK["ink"],
    "#111111": DARK["ink"],
    "#222222": DARK["ink"],
    "#4c4c4c": "#b9b7b2",
    "#555555": "#b9b7b2",
    "#5b5b5b": DARK["soft"],
    "#767676": "#9b9994",
    "#777777": "#9b9994",
    "#e4e4e4": "#30343a",  # grids
    "#f4f4f2": "#202327",  # the background of trajectories
    "#f2f2f2": "#202327",
    "#e4e4e0": "#3c4046",
    "#b8b8b8": "#565b62",
    "#0072b2": "#2b8fd0",
    "#b35806": "#d9812f",
    "#542788": "#a58fd6",
    "#be2f8e": "#d048a0",
    "#7f1079": "#a93fb0",
    "#3d0052": "#8a5cc0",
}


def add_dark_mode(svg: bytes) -> bytes:
    """Return the SVG with a style sheet that changes its colours if the reader prefers a dark theme."""
    rules = [f"svg{{fill:{DARK['ink']}}}"]  # text without a colour of its own
    for day, night in COLOURS.items():
        rules += [f'[style*="{part}: {day}"]{{{part}:{night} !important}}' for part in ("fill", "stroke")]
    # Arrows lie on pale colours, which do not change: a dark rim keeps them visible.
    rules.append('[style*="fill: #222222; stroke: #ffffff"]{stroke-width:1.1px !important}')
    style = f"<style>@media screen and (prefers-color-scheme: dark){{{''.join(rules)}}}</style>"
    begin = svg.index(b">", svg.index(b"<svg")) + 1
    return svg[:begin] + style.encode() + svg[begin:]
