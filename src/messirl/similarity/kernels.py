"""Similarities s(ζ, ζ') between trajectories.

    RBF(σ)               exp(−‖f_ζ − f_ζ'‖² / 2σ)         (the paper's own form: σ, not σ²)
    Exponential(scale)   exp(−‖f_ζ − f_ζ'‖ / scale)
    CompleteGraph()      1
    Precomputed(W)       W[ζ, ζ'], experts first, then the unlabelled ones

Any callable (trajectories, counts) → (n, n) matrix will do in their place. These four also give their matrix in blocks
of rows, so that the penalty never holds all n² numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.spatial.distance import pdist

from messirl._checks import number
from messirl._defaults import SIGMA
from messirl._types import Floats

Rows = Callable[[slice], Any]
ROUNDING = 1e-12  # of the largest count of a feature: counts that differ by less are equal


class Similarity(Protocol):
    """What a streamed similarity offers: a function from a slice of rows to that block (m, n) of the matrix."""

    def rows(self, counts: Floats) -> Rows: ...


class _Full:
    """The whole matrix, for those who want to look at it."""

    def __call__(self, trajectories: Any, counts: npt.ArrayLike) -> Any:
        rows: Rows = self.rows(np.asarray(counts, dtype=np.float64))  # type: ignore[attr-defined]
        return rows(slice(None))


@dataclass(frozen=True)
class RBF(_Full):
    """exp(−‖Δ‖²/2σ). sigma="median": the median of ‖Δ‖² over all pairs. standardise: counts in units of spread."""

    sigma: float | str = SIGMA
    standardise: bool = False

    def rows(self, counts: Floats) -> Rows:
        points = standardised(counts) if self.standardise else centred(counts)
        sigma = bandwidth(points) if self.sigma == "median" else number("sigma", self.sigma, above=0.0)
        return lambda block: np.exp(-squared_distances(points[block], points) / (2.0 * sigma))


DEFAULT = RBF(SIGMA, standardise=True)  # of whoever is given no other


@dataclass(frozen=True)
class Exponential(_Full):
    """exp(−‖Δ‖/scale)."""

    scale: float = 1.0
    standardise: bool = False

    def rows(self, counts: Floats) -> Rows:
        points = standardised(counts) if self.standardise else centred(counts)
        scale = number("scale", self.scale, above=0.0)
        return lambda block: np.exp(-np.sqrt(squared_distances(points[block], points)) / scale)


@dataclass(frozen=True)
class CompleteGraph(_Full):
    """1 for every pair: what is left of the penalty when similarity says nothing."""

    def rows(self, counts: Floats) -> Rows:
        n = len(counts)
        return lambda block: np.ones((len(range(*block.indices(n))), n))


@dataclass(frozen=True, eq=False)
class Precomputed(_Full):
    """A given matrix, dense or sparse: experts first, then the unlabelled trajectories."""

    matrix: Any

    def rows(self, counts: Floats) -> Rows:
        matrix = checked_weights(self.matrix, len(counts))
        return lambda block: matrix[block]


def squared_distances(a: Floats, b: Floats) -> Floats:
    """‖a_i − b_j‖², (m, n), to a rounding of the squares themselves: give points around 0."""
    square = np.sum(a * a, axis=1)[:, None] + np.sum(b * b, axis=1)[None, :] - 2.0 * (a @ b.T)
    return np.asarray(np.maximum(square, 0.0))


def deviations(counts: Floats) -> Floats:
    """Standard deviation of each feature's counts, (d,); exactly 0 where they differ by no more than rounding."""
    found = counts.std(axis=0)
    return np.where(found > ROUNDING * np.abs(counts).max(axis=0), found, 0.0)


def centred(counts: Floats) -> Floats:
    """Counts around 0; features that do not vary are 0."""
    return np.where(deviations(counts) > 0.0, counts - counts.mean(axis=0), 0.0)


def standardised(counts: Floats) -> Floats:
    """Counts in units of their spread over all trajectories; features that do not vary are left out of account."""
    spread = deviations(counts)
    return np.asarray(centred(counts) / np.where(spread > 0.0, spread, 1.0))


def bandwidth(points: Floats) -> float:
    """The median of ‖Δ‖² over all pairs of different trajectories."""
    if len(points) < 2:
        raise ValueError("sigma='median' needs at least two trajectories: give sigma a number")
    median = float(np.median(pdist(points, "sqeuclidean")))
    if np.sqrt(median) <= ROUNDING * float(np.linalg.norm(np.abs(points).max(axis=0))):
        raise ValueError("sigma='median' is 0: at least half of all pairs have equal counts; give sigma a number")
    return median


def checked_weights(weights: Any, n: int) -> Any:
    """A similarity matrix (n, n): finite, not negative, symmetric; sparse stays sparse."""
    matrix: Any = sp.csr_array(weights, dtype=np.float64) if sp.issparse(weights) else np.asarray(weights)
    if not sp.issparse(matrix) and matrix.dtype.kind not in "fiub":
        raise TypeError(f"a similarity must be numbers, not {matrix.dtype}")
    if matrix.shape != (n, n):
        raise ValueError(
            f"the similarity has shape {matrix.shape}, but there are {n} trajectories: it must be ({n}, {n})"
        )
    data: Any = matrix.data if sp.issparse(matrix) else matrix.astype(np.float64, copy=False)
    if not np.isfinite(data).all():
        raise ValueError(f"the similarity is not finite{_where(matrix, ~np.isfinite(data))}")
    if (data < 0).any():
        raise ValueError(f"the similarity is negative{_where(matrix, data < 0)}: it must be >= 0")
    largest = float(data.max()) if data.size else 0.0
    gap = abs(matrix - matrix.T)
    if float(gap.max()) > 1e-9 * max(largest, 1e-300):
        i, j = np.unravel_index(int(gap.argmax()), gap.shape)
        raise ValueError(
            f"the similarity is not symmetric: s({i}, {j}) = {matrix[i, j]:g} but s({j}, {i}) = {matrix[j, i]:g}; "
            "use (W + W.T) / 2"
        )
    return matrix


def _where(matrix: Any, flags: Any) -> str:
    if sp.issparse(matrix):
        return ""
    i, j = np.argwhere(flags)[0]
    return f" at ({i}, {j})"
