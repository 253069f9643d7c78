"""Default features of vector states for `FittedMESSI`.

    Squares      f(s) = (1, z, z²),                   z = (s − mean) / spread
    RadialGrid   f(s) = (1, exp(−½‖(s − c_i)/w‖²)),   c_i a grid of n centres per coordinate, w their distance

Both contain a constant: its weight is the reward of every step, by which a policy may prefer short episodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from messirl._types import Floats
from messirl.dynamics.transition_dataset import Scale, as_points

MAX_CENTRES = 10_000


class Squares(Scale):
    """1, each coordinate and its square, in units of the coordinate's spread: d = 1 + 2k."""

    @classmethod
    def fit(cls, points: npt.ArrayLike) -> Self:
        """Estimate centre and unit from points (n, k); a coordinate that never changes keeps its own unit."""
        return cls.of(as_points(points, "points"))

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        k = range(self.centre.size)
        return ["constant", *(f"o_{j}" for j in k), *(f"o_{j} squared" for j in k)]

    @property
    def aims(self) -> list[str]:
        """Descriptions of a large value of each feature."""
        k = range(self.centre.size)
        return ["every step", *(f"a high o_{j}" for j in k), *(f"o_{j} far from its mean" for j in k)]

    def __call__(self, points: Floats) -> Floats:
        """Return features (n, 1 + 2k) of points (n, k)."""
        z = super().__call__(np.asarray(points, dtype=np.float64))
        return np.column_stack([np.ones(len(z)), z, z**2])


@dataclass(frozen=True, eq=False)
class RadialGrid:
    """1, and a Gaussian at each point of a grid of n centres per coordinate: d = 1 + n^k."""

    low: Floats
    high: Floats
    n: int

    @classmethod
    def fit(cls, points: npt.ArrayLike, n: int) -> Self:
        """Return a grid that covers the range of the points (m, k)."""
        found = as_points(points, "points")
        low, high = found.min(axis=0), found.max(axis=0)
        if isinstance(n, bool) or n < 2 or float(n) ** low.size > MAX_CENTRES:
            most = int(np.floor(MAX_CENTRES ** (1 / low.size) + 1e-9))
            raise ValueError(f"a grid of {n} centres in {low.size} coordinates: give 2 … {most} centres per coordinate")
        if (low == high).any():
            j = int(np.argmax(low == high))
            raise ValueError(f"coordinate {j} is {low[j]:g} in every state, and a grid cannot divide it: drop it")
        return cls(low, high, int(n))

    @property
    def centres(self) -> Floats:
        """The centres, (n^k, k), with the last coordinate varying fastest."""
        axes = [np.linspace(a, b, self.n) for a, b in zip(self.low, self.high, strict=True)]
        return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)

    @property
    def names(self) -> list[str]:
        """Names of the features, given by their centres."""
        return ["constant", *("at " + ", ".join(f"{x:.3g}" for x in centre) for centre in self.centres)]

    @property
    def aims(self) -> list[str]:
        """Descriptions of a large value of each feature."""
        return ["every step", *(f"being near ({name.removeprefix('at ')})" for name in self.names[1:])]

    def __call__(self, points: Floats) -> Floats:
        """Return features of points (n, k): a constant, and the closeness of each centre."""
        unit = (self.high - self.low) / (self.n - 1)
        z = np.asarray(points, dtype=np.float64) / unit
        bumps = np.exp(-0.5 * ((z[:, None, :] - self.centres / unit) ** 2).sum(axis=2))
        return np.column_stack([np.ones(len(z)), bumps])
