"""Numbers by their size, where those that differ by rounding alone are as large as each other."""

from __future__ import annotations

import numpy as np

from messirl._types import Floats, Ints

ALIKE = 1e-9  # of a number: others closer to it are as large


def ranked(values: Floats) -> Ints:
    """Places of the numbers, the largest first, and of those as large as each other the first first."""
    order = np.argsort(-values, kind="stable")
    falls = values[order[:-1]] - values[order[1:]] > ALIKE * np.abs(values[order[:-1]])
    level = np.concatenate([[0], np.cumsum(falls)])[: order.size]
    return np.asarray(order[np.lexsort((order, level))])
