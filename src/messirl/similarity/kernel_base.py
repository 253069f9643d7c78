"""A kernel on points: the similarity of two trajectories as a function of the distance between their counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from messirl._types import Floats
from messirl.similarity.standardize import Points


@dataclass(frozen=True, eq=False)
class Kernel:
    """s(ζ, ζ') = profile(‖x_ζ − x_ζ'‖²): called with rows and columns, the block of the matrix (see penalty_blocks.py).

    points  : x, (n, d), to be indexed by rows
    profile : from squares to similarities, in place
    """

    points: Points | Floats
    profile: Callable[[Floats], Floats]

    def __call__(self, rows: Any, columns: Any) -> Floats:
        """Return the similarities between the trajectories `rows` and `columns`, given by their numbers."""
        return self.between(self.points[rows], self.points[columns])

    def between(self, a: Floats, b: Floats) -> Floats:
        """Return the similarities of points (m, d) and points (k, d), (m, k)."""
        return self.profile(squared_distances(a, b))


def squared_distances(a: Floats, b: Floats) -> Floats:
    """Return ‖a_i − b_j‖², (m, n), with the rounding errors of ‖a‖² and ‖b‖², so points should be centred."""
    square: Floats = np.add.outer(np.sum(a * a, axis=1), np.sum(b * b, axis=1))
    product = a @ b.T
    product *= 2.0
    square -= product
    np.maximum(square, 0.0, out=square)
    return square
