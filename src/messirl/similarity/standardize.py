"""Feature counts as centred points, standardised or not, between which kernels measure distances.

For many trajectories the points are computed from the counts on demand, so that a second table of that size is never
held.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from messirl._types import Floats
from messirl.data.chunked_reduce import Found, run_pass
from messirl.similarity.penalty_blocks import exceeds_exact_limit

ROUNDING = 1e-12  # of the largest count of a feature: counts that differ by less are equal


@dataclass(frozen=True, eq=False)
class Units:
    """Origin and unit of counts: (counts − zero) / unit, 0 where the unit is 0."""

    zero: Floats
    unit: Floats

    def __call__(self, counts: Floats) -> Floats:
        """Return counts (k, d) as points."""
        varies = self.unit > 0.0
        found = counts - self.zero
        found /= np.where(varies, self.unit, 1.0)
        return found if varies.all() else np.where(varies, found, 0.0)


@dataclass(frozen=True, eq=False)
class Points:
    """Counts in some units; `points[rows]` computes the rows on demand."""

    counts: Floats
    units: Units

    @classmethod
    def of(cls, counts: Floats, *, standardise: bool) -> Points:
        """Return centred points, in units of their spread or in their own; features that do not vary are 0."""
        spread = deviations(counts)
        unit = spread if standardise else np.where(spread > 0.0, 1.0, 0.0)
        return cls(counts, Units(counts.mean(axis=0), unit))

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, rows: Any) -> Floats:
        return self.units(self.counts[rows])

    def reach(self) -> Floats:
        """Return the largest absolute coordinate along each axis, (d,)."""
        ends = self.units(np.stack([self.counts.min(axis=0), self.counts.max(axis=0)]))
        return np.asarray(np.abs(ends).max(axis=0))


def points_of(counts: Floats, *, standardise: bool) -> Points | Floats:
    """Return points to be indexed by rows: an array where there are few, otherwise computed on demand."""
    points = Points.of(counts, standardise=standardise)
    return points if exceeds_exact_limit(len(counts)) else points[:]


def deviations(counts: Floats) -> Floats:
    """Return the standard deviation of each feature's counts, (d,); exactly 0 where they differ only by rounding."""
    squares, _ = run_pass(partial(_squares_around, counts.mean(axis=0)), counts, counts.shape[1])
    found = np.sqrt(squares / len(counts))
    return np.where(found > ROUNDING * np.maximum(counts.max(axis=0), -counts.min(axis=0)), found, 0.0)


def _squares_around(mean: Floats, rows: Floats) -> Found:
    """Return Σ (f − mean)² over rows f, (d,)."""
    return ((rows - mean) ** 2).sum(axis=0), None
