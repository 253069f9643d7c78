"""The file of `messirl fit --table`: where it may be written, and its format by the ending of its name."""

from __future__ import annotations

from messirl.app.cli._parser import same_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any


def table_writer(place: Path | None, *, force: bool, stars: bool, page: Path) -> Callable[[Any, Any], Path] | None:
    """A function that writes an estimation table with its ratios and returns where; None where none is wanted.

    page : where the page of the fit is written, or would be
    What is wrong with the place or the options is said now, before the fit.
    """
    if place is None:
        if stars:
            raise ValueError("--stars is of --table, which is not given: give it, or leave this out")
        return None
    from messirl._files import beside, check_writable
    from messirl.inference.table_export import FORMATS
    from messirl.io.folder.problem_json import SETTINGS
    from messirl.io.folder.reader import TABLES

    kind = place.suffix.lower()
    if kind not in FORMATS:
        raise ValueError(f"--table {place} is neither .csv nor .tex nor .html: end its name in one of them")
    if stars and kind == ".csv":
        raise ValueError("--stars is of .tex and .html: a .csv holds p itself; leave it out")
    if same_place(place, page):
        raise ValueError(f"--table {place} is where the page of the fit is written: give another name")
    if place.stem in TABLES and (place.parent / SETTINGS).exists():
        raise ValueError(f"--table {place} would be taken for a table of the problem in its folder: give another name")
    if place.exists() and not place.is_dir() and not force:
        raise ValueError(f"--table {place} is there already: give another name, or --force to replace it")
    check_writable(place)

    def write(table: Any, ratios: Any) -> Path:
        text = FORMATS[kind](table, ratios, **({"stars": True} if stars else {}))
        place.parent.mkdir(parents=True, exist_ok=True)
        with beside(place) as part:
            part.write_text(text, encoding="utf-8")
        return place

    return write
