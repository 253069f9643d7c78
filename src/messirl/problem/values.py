"""What a column holds, in a few words: what to filter by."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

SHOWN = 8


def most_frequent(column: npt.NDArray[Any]) -> str:
    """The most frequent values and how often each occurs, or the range of many numbers."""
    if column.size == 0:
        return "nothing"
    values, often = np.unique(column.astype(str), return_counts=True)
    if values.size > SHOWN and column.dtype.kind in "if":
        return f"{np.nanmin(column):g} to {np.nanmax(column):g}, {values.size} different values"
    order = np.argsort(-often, kind="stable")[:SHOWN]
    more = f" and {values.size - SHOWN} more" if values.size > SHOWN else ""
    return ", ".join(f"{values[i]} ({often[i]})" for i in order) + more
