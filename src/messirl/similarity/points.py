"""Counts as points around 0, in their own units or in those of their spread, which kernels measure distances between.

Of many trajectories the points are made from the counts when some of them are asked for, so that a second table of
that size is never held.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from messirl._types import Floats
from messirl.similarity.blocks import many, pieces

ROUNDING = 1e-12  # of the largest count of a feature: counts that differ by less are equal


@dataclass(frozen=True, eq=False)
class Points:
    """(counts − zero) / unit, 0 where the unit is 0; `points[rows]` computes the rows that are asked for."""

    counts: Floats
    zero: Floats
    unit: Floats

    @classmethod
    def of(cls, counts: Floats, *, standardise: bool) -> Points:
        """Points around 0, in units of their spread or in their own; features that do not vary are 0."""
        spread = deviations(counts)
        return cls(counts, counts.mean(axis=0), spread if standardise else np.where(spread > 0.0, 1.0, 0.0))

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, rows: Any) -> Floats:
        varies = self.unit > 0.0
        found = self.counts[rows] - self.zero
        found /= np.where(varies, self.unit, 1.0)
        return found if varies.all() else np.where(varies, found, 0.0)


def points_of(counts: Floats, *, standardise: bool) -> Points | Floats:
    """Points to be indexed by rows: an array where there are few, otherwise computed when they are asked for."""
    points = Points.of(counts, standardise=standardise)
    return points if many(len(counts)) else points[:]


def deviations(counts: Floats) -> Floats:
    """Standard deviation of each feature's counts, (d,); exactly 0 where they differ by no more than rounding."""
    mean, squares = counts.mean(axis=0), np.zeros(counts.shape[1:])
    for rows in pieces(*counts.shape):
        squares += ((counts[rows] - mean) ** 2).sum(axis=0)
    found = np.sqrt(squares / len(counts))
    return np.where(found > ROUNDING * np.maximum(counts.max(axis=0), -counts.min(axis=0)), found, 0.0)
