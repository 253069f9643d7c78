"""Figures as SVG and PNG files: deterministic bytes, written atomically."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from messirl._files import atomic_path
from messirl.app.report.common.dark_mode_svg import add_dark_mode
from messirl.app.report.common.method_style import RC

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PNG_DPI = 220


@dataclass(frozen=True)
class Image:
    """One figure, as SVG and PNG."""

    name: str
    svg: bytes
    png: bytes

    @property
    def uri(self) -> str:
        """The SVG with its dark theme as a data URI, which needs no file and no network."""
        return "data:image/svg+xml;base64," + base64.b64encode(add_dark_mode(self.svg)).decode()


def render(name: str, make: Callable[[], Figure | None], folder: Path | None = None) -> Image | None:
    """Draw a figure in the style of the package, ignoring the user's settings; None if there is nothing to draw.

    folder : where both formats are written
    """
    import matplotlib.style

    with matplotlib.style.context(["default", RC]), warnings.catch_warnings():
        # A glyph that the font lacks becomes a box; the text of the page has the full name.
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .*missing from")
        figure = make()
        if figure is None:
            return None
        image = Image(name, *formats(figure))
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes(folder / f"{name}.svg", image.svg)
        write_bytes(folder / f"{name}.png", image.png)
    return image


def formats(figure: Figure) -> tuple[bytes, bytes]:
    """Return the figure as SVG and as PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine("none")  # laid out once, for both formats
    svg, png = io.BytesIO(), io.BytesIO()
    # Not savefig, which draws a figure with a layout engine twice. Without date and program name in the metadata, the
    # same results give the same bytes.
    canvas: Any = FigureCanvasSVG(figure)
    canvas.print_svg(svg, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    figure.set_dpi(PNG_DPI)
    canvas = FigureCanvasAgg(figure)
    canvas.print_png(png, metadata={"Software": None})
    return svg.getvalue(), png.getvalue()


def write_bytes(target: Path, data: bytes) -> None:
    """Write a temporary file and rename it, so that a full disk leaves the old file intact."""
    with atomic_path(target) as part:
        part.write_bytes(data)
