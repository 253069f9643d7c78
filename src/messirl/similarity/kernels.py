"""Similarities s(ζ, ζ') between trajectories.

    RBF(σ)               exp(−‖f_ζ − f_ζ'‖² / 2σ)         (the paper's own form: σ, not σ²)
    Exponential(scale)   exp(−‖f_ζ − f_ζ'‖ / scale)
    CompleteGraph()      1
    Precomputed(W)       W[ζ, ζ'], experts first, then the unlabelled ones (measure.py)

Any callable (trajectories, counts) → (n, n) matrix will do in their place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from messirl._checks import number
from messirl._defaults import SIGMA
from messirl._types import Floats
from messirl.similarity.blocks import Block
from messirl.similarity.measure import Similarity

ROUNDING = 1e-12  # of the largest count of a feature: counts that differ by less are equal


@dataclass(frozen=True)
class RBF(Similarity):
    """exp(−‖Δ‖²/2σ). sigma="median": the median of ‖Δ‖² over all pairs. standardise: counts in units of spread."""

    sigma: float | str = SIGMA
    standardise: bool = False

    def on(self, trajectories: Any, counts: Floats) -> Block:
        points = standardised(counts) if self.standardise else centred(counts)
        sigma = bandwidth(points) if self.sigma == "median" else number("sigma", self.sigma, above=0.0)
        return lambda rows, columns: np.exp(-squared_distances(points[rows], points[columns]) / (2.0 * sigma))


DEFAULT = RBF(SIGMA, standardise=True)  # of whoever is given no other


@dataclass(frozen=True)
class Exponential(Similarity):
    """exp(−‖Δ‖/scale)."""

    scale: float = 1.0
    standardise: bool = False

    def on(self, trajectories: Any, counts: Floats) -> Block:
        points = standardised(counts) if self.standardise else centred(counts)
        scale = number("scale", self.scale, above=0.0)
        return lambda rows, columns: np.exp(-np.sqrt(squared_distances(points[rows], points[columns])) / scale)


@dataclass(frozen=True)
class CompleteGraph(Similarity):
    """1 for every pair: what is left of the penalty when similarity says nothing."""

    def on(self, trajectories: Any, counts: Floats) -> Block:
        every = np.arange(len(counts))
        return lambda rows, columns: np.ones((every[rows].size, every[columns].size))

    def penalty(self, trajectories: Any, counts: Floats) -> Floats:
        """Twice the scatter of the counts about their mean: no pair is looked at."""
        around = counts - counts.mean(axis=0)
        return np.asarray(2.0 * around.T @ around)


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
