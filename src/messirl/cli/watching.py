"""A fit as a command shows it: its progress, and what it warns of as remarks."""

from __future__ import annotations

import warnings
from typing import Any

from messirl.cli.common import note, remarks
from messirl.report.kit.progress import Progress


def watched(model: Any, max_iter: int, *data: Any) -> list[str]:
    """Fit the model; its remarks are said, and returned."""
    with Progress("fit", "iterations", at_most=True) as progress, warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model.callback = lambda state: progress(state["iteration"], max_iter)
        model.fit(*data)
    model.callback = None
    notes = [*remarks(heard), *getattr(model, "remarks_", ())]
    for text in notes:
        note(text)
    return notes
