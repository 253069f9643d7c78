"""Shared parts of all maps: dot sizes, labels that do not overlap, and axis directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from messirl import plot
from messirl._types import Floats, Ints
from messirl.app.report.common.feature_labels import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Box = tuple[float, float, float, float]  # left, low, right, high
NAMES = 14  # labels at most on a map of dots
LOOKED = 400  # states whose label is tried
CROWDED = 5000  # dots above which labels may cover dots
TILES = 150  # labels at most on a map of tiles
SIZE = 5.8  # points, of the letters of a name
LONGEST = 18  # letters of a name
SHORTEST = 5  # letters below which a name is left out instead of cut
GAP = 1.5  # points between a dot and its name
SOFT = "#5b5b5b"
AROUND = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))  # positions of a label, by preference
BETWEEN = (*AROUND[4:], *AROUND[:4])  # the same, diagonals first, for dots with lines to their sides
DARK, PALE = "#141414", "#fcfcfc"  # ink on map colours, which are the same in both themes
HALFWAY = 0.18  # luminance above which black has a higher contrast than white


def spacing(at: Floats) -> float:
    """Return the typical distance between states, clipped to between 0.4 % and 35 % of the map."""
    span = float(np.ptp(at, axis=0).max()) or 1.0
    return float(np.clip(plot.apart(at), 0.004 * span, 0.35 * span))


def dot_diameter(at: Floats, around: Floats, width: float, height: float) -> float:
    """Return the dot diameter in points: half the spacing of states on a map of this size in inches.

    around : corners of the area that the map shows
    """
    spans = np.maximum(np.ptp(around, axis=0), 1e-300)
    scale = float(np.min(np.array([width, height]) / spans))
    return float(np.clip(0.5 * spacing(at) * scale * 72, 1.0, 9.0))


def label_axes(ax: Axes, *, y_down: bool = False) -> None:
    """Label the directions of x and y beside a map, and invert it if y grows downwards."""
    if y_down and not ax.yaxis_inverted():
        ax.invert_yaxis()
    look: dict[str, Any] = {"fontsize": 6.5, "color": SOFT, "labelpad": 2}
    ax.set_xlabel("x →", **look)
    ax.set_ylabel(f"y {'↓' if y_down else '↑'}", rotation=0, va="center", ha="right", **look)


def write_names(
    ax: Axes,
    at: Floats,
    names: Callable[[int], str],
    order: Ints,
    *,
    diameter: Floats | float,
    tiles: bool,
    lift: float = 0.0,
    avoid: Sequence[Box] = (),
    around: Sequence[tuple[int, int]] = AROUND,
    inks: Sequence[str] | None = None,
) -> list[int]:
    """Write names of states beside their dots, or on their tiles, in this order, as long as there is room.

    The layout of the figure must be done. A name covers no other name and no dot, and stays inside the map.

    names : returns the name of state i
    diameter : of the dots, in points
    lift : height of a name above the middle of its tile, in tiles
    avoid : boxes that a name beside a dot must not cover, in pixels
    around : positions of a name beside its dot, by preference
    inks : text colours on coloured tiles; None follows the theme of the page
    Returns the states that have a name.
    """
    figure = ax.get_figure()
    assert figure is not None
    point = figure.dpi / 72
    pixel = np.asarray(ax.transData.transform(at))
    if tiles:
        room = plot.apart(at) * abs(float(np.diff(ax.transData.transform([(0, 0), (1, 0)])[:, 0])[0])) / point
        found = [(s, _fitting(names(s), 0.94 * room)) for s in order[:TILES].tolist() if room > SIZE * 1.3]
        written = [(s, text) for s, text in found if text is not None]
        for s, text in written:
            ink = None if inks is None else inks[s]
            _write(ax, text, at[s], (0.0, lift * room), ink, ha="center", va="center")
        return [s for s, _ in written]
    radius = np.broadcast_to(np.asarray(diameter) / 2 * point, len(at))
    box, whole, margin = ax.get_window_extent(), figure.bbox, 12 * point
    frame = (
        max(box.x0 - margin, whole.x0),
        max(box.y0 - margin, whole.y0),
        min(box.x1 + margin, whole.x1),
        min(box.y1 + margin, whole.y1),
    )
    dots = np.arange(len(at) if len(at) <= CROWDED else 0)
    taken, done = list(avoid), list[int]()
    for s in order[:LOOKED].tolist():
        if len(done) >= NAMES:
            break
        text = shorten(names(s), LONGEST)
        wide, high = (length * point for length in _measured(text))
        for right, up in around:
            reach = radius[s] + GAP * point
            corner = max(0.75 * reach, radius[s] + 0.1 * point)
            x = pixel[s, 0] + right * (corner if up else reach) - (0.0, 0.5 * wide, wide)[1 - right]
            y = pixel[s, 1] + up * (corner if right else reach) - (0.0, 0.5 * high, high)[1 - up]
            own = (x, y, x + wide, y + high)
            inside = own[0] > frame[0] and own[1] > frame[1] and own[2] < frame[2] and own[3] < frame[3]
            if inside and not any(_meet(own, other) for other in taken) and not _covers(own, pixel[dots], radius[dots]):
                offset = (float(x - pixel[s, 0]) / point, float(y - pixel[s, 1]) / point)
                _write(ax, text, at[s], offset, ha="left", va="bottom")
                taken.append(own)
                done.append(s)
                break
    return done


def tile_inks(ax: Axes, at: Floats) -> list[str] | None:
    """Return DARK or PALE for each state, whichever is legible on its tile; None without tiles."""
    from matplotlib.collections import QuadMesh

    found = [mesh for mesh in ax.collections if isinstance(mesh, QuadMesh)]
    if not found:
        return None
    columns, rows = (np.unique(at[:, axis], return_inverse=True)[1] for axis in (0, 1))
    inks = [DARK] * len(at)
    for mesh in found:
        table: Any = np.ma.masked_invalid(np.ma.asarray(mesh.get_array()))
        values = table.reshape(int(rows.max()) + 1, int(columns.max()) + 1)
        colours = mesh.to_rgba(values)[rows, columns, :3]
        light = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
        there = ~np.ma.getmaskarray(values)[rows, columns]
        for s in np.flatnonzero(there).tolist():
            inks[s] = DARK if light[s] @ [0.2126, 0.7152, 0.0722] > HALFWAY else PALE
    return inks


def opposite(ink: str) -> str:
    """Return the colour of the rim around letters and arrows."""
    return PALE if ink == DARK else DARK


def _write(ax: Axes, text: str, at: Floats, offset: tuple[float, float], ink: str | None = None, **where: Any) -> None:
    """Write text with a rim, legible on any colour."""
    from matplotlib.patheffects import withStroke

    rim = withStroke(linewidth=1.6, foreground="white", alpha=0.85)
    if ink is not None:
        rim = withStroke(linewidth=1.0, foreground=opposite(ink), alpha=0.35)
    look: dict[str, Any] = {"fontsize": SIZE, "color": ink or "#111111", "zorder": 8, "path_effects": [rim]}
    made = ax.annotate(text, (at[0], at[1]), offset, textcoords="offset points", **look, **where)
    made.set_in_layout(False)
    made.set_annotation_clip(False)


def _measured(text: str) -> tuple[float, float]:
    """Return the width and the height of a line of text, in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    width, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(size=SIZE), ismath=False)
    return float(width) + 1.0, SIZE * 1.15


def _fitting(name: str, room: float) -> str | None:
    """Return the name shortened to fit into `room` points; None if hardly anything would be left."""
    for most in range(LONGEST, SHORTEST - 1, -1):
        text = shorten(name, most)
        if _measured(text)[0] <= room:
            return text
        if len(text) <= SHORTEST:
            return None
    return None


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _covers(box: Box, dots: Floats, radius: Floats) -> bool:
    """Return whether a box covers a dot or part of one."""
    near = np.maximum(np.abs(dots - [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2]) - radius[:, None], 0.0)
    return bool((near < [(box[2] - box[0]) / 2, (box[3] - box[1]) / 2]).all(axis=1).any())
