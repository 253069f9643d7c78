"""The file of `messirl fit --table`: checks of its path, and its format by the suffix."""

from __future__ import annotations

from messirl.app.cli._parser import same_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any


def table_writer(place: Path | None, *, force: bool, stars: bool, page: Path) -> Callable[[Any, Any], Path] | None:
    """Return a function that writes an estimation table with its ratios and returns its path; None without --table.

    page : path of the report of the fit
    Errors about the path or the options are raised here, before the fit.
    """
    if place is None:
        if stars:
            raise ValueError("--stars has no effect without --table: give --table, or leave --stars out")
        return None
    from messirl._files import atomic_path, check_writable
    from messirl.inference.table_export import FORMATS
    from messirl.io.folder.problem_json import SETTINGS
    from messirl.io.folder.reader import TABLES

    kind = place.suffix.lower()
    if kind not in FORMATS:
        raise ValueError(f"--table {place}: the name must end in .csv, .tex or .html")
    if stars and kind == ".csv":
        raise ValueError(
            "--stars has no effect on a .csv table, which contains p: leave --stars out, or write .tex or .html"
        )
    if same_place(place, page):
        raise ValueError(f"--table {place} is the path of the report: give another name")
    if place.stem in TABLES and (place.parent / SETTINGS).exists():
        raise ValueError(f"--table {place} would be read as a table of the problem in this folder: give another name")
    if place.exists() and not place.is_dir() and not force:
        raise ValueError(f"--table {place} exists already: give another name, or --force to replace it")
    check_writable(place)

    def write(table: Any, ratios: Any) -> Path:
        text = FORMATS[kind](table, ratios, **({"stars": True} if stars else {}))
        place.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(place) as part:
            part.write_text(text, encoding="utf-8")
        return place

    return write
