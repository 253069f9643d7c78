"""Ranking numbers, where those that differ only by rounding count as equal."""

from __future__ import annotations

import numpy as np

from messirl._types import Floats, Ints

ALIKE = 1e-9  # relative difference below which numbers count as equal


def ranked(values: Floats) -> Ints:
    """Return the indices of the numbers, the largest first; equal ones stay in their order."""
    order = np.argsort(-values, kind="stable")
    falls = values[order[:-1]] - values[order[1:]] > ALIKE * np.abs(values[order[:-1]])
    level = np.concatenate([[0], np.cumsum(falls)])[: order.size]
    return np.asarray(order[np.lexsort((order, level))])
