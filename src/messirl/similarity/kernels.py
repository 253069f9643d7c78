"""Similarities s(ζ, ζ') between trajectories.

    RBF(σ)               exp(−‖f_ζ − f_ζ'‖² / 2σ)         (the paper's own form: σ, not σ²)
    Exponential(scale)   exp(−‖f_ζ − f_ζ'‖ / scale)
    CompleteGraph()      1
    Precomputed(W)       W[ζ, ζ'], experts first, then the unlabelled ones (measure.py)

Any callable (trajectories, counts) → (n, n) matrix can take their place.
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
    """exp(−‖Δ‖²/2σ), Δ the difference of two trajectories' feature counts; σ and not σ², as the paper has it.

    Parameters
    ----------
    sigma : float or "median"
        The width; "median" is the median of ‖Δ‖² over all pairs.
    standardise : bool
        Whether counts are measured in units of their spread over the trajectories.

    References
    ----------
    Audiffren, Valko, Lazaric, Ghavamzadeh: Maximum Entropy Semi-Supervised Inverse Reinforcement Learning, IJCAI 2015,
    section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from messirl.similarity import RBF
    >>> counts = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
    >>> RBF(sigma=5.0)(None, counts).round(2)
    array([[1.  , 0.9 , 0.41],
           [0.9 , 1.  , 0.67],
           [0.41, 0.67, 1.  ]])
    """

    sigma: float | str = SIGMA
    standardise: bool = False

    def on(self, trajectories: Any, counts: Floats) -> Block:
        """The blocks exp(−‖Δ‖²/2σ); "median" and standardised units are taken over the whole set."""
        points = standardised(counts) if self.standardise else centred(counts)
        sigma = bandwidth(points) if self.sigma == "median" else number("sigma", self.sigma, above=0.0)
        return lambda rows, columns: np.exp(-squared_distances(points[rows], points[columns]) / (2.0 * sigma))


DEFAULT = RBF(SIGMA, standardise=True)  # where no other similarity is given


@dataclass(frozen=True)
class Exponential(Similarity):
    """exp(−‖Δ‖/scale), Δ the difference of two trajectories' feature counts.

    Parameters
    ----------
    scale : float
        The distance at which the similarity is 1/e.
    standardise : bool
        Whether counts are measured in units of their spread over the trajectories.

    References
    ----------
    Audiffren, Valko, Lazaric, Ghavamzadeh: Maximum Entropy Semi-Supervised Inverse Reinforcement Learning, IJCAI 2015,
    section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from messirl.similarity import Exponential
    >>> counts = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
    >>> Exponential(scale=2.0)(None, counts).round(2)
    array([[1.  , 0.61, 0.22],
           [0.61, 1.  , 0.37],
           [0.22, 0.37, 1.  ]])
    """

    scale: float = 1.0
    standardise: bool = False

    def on(self, trajectories: Any, counts: Floats) -> Block:
        """The blocks exp(−‖Δ‖/scale); standardised units are taken over the whole set."""
        points = standardised(counts) if self.standardise else centred(counts)
        scale = number("scale", self.scale, above=0.0)
        return lambda rows, columns: np.exp(-np.sqrt(squared_distances(points[rows], points[columns])) / scale)


@dataclass(frozen=True)
class CompleteGraph(Similarity):
    """1 for every pair of trajectories: the penalty without any information on which are similar.

    References
    ----------
    Audiffren, Valko, Lazaric, Ghavamzadeh: Maximum Entropy Semi-Supervised Inverse Reinforcement Learning, IJCAI 2015,
    section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from messirl.similarity import CompleteGraph
    >>> counts = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
    >>> CompleteGraph()(None, counts).round(2)
    array([[1., 1., 1.],
           [1., 1., 1.],
           [1., 1., 1.]])
    """

    def on(self, trajectories: Any, counts: Floats) -> Block:
        """Blocks of ones."""
        every = np.arange(len(counts))
        return lambda rows, columns: np.ones((every[rows].size, every[columns].size))

    def penalty(self, trajectories: Any, counts: Floats) -> Floats:
        """Matrix M of Eq. 5: twice the scatter of the counts about their mean, without a loop over pairs."""
        around = counts - counts.mean(axis=0)
        return np.asarray(2.0 * around.T @ around)


def squared_distances(a: Floats, b: Floats) -> Floats:
    """‖a_i − b_j‖², (m, n); errors are those of rounding the squares ‖a‖² and ‖b‖², so points should lie around 0."""
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
    """Counts in units of their spread over all trajectories; features that do not vary are 0."""
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
