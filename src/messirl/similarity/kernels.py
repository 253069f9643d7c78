"""Similarities s(ζ, ζ') between trajectories.

    RBF(σ)               exp(−‖f_ζ − f_ζ'‖² / 2σ)         (the paper's own form: σ, not σ²)
    Exponential(scale)   exp(−‖f_ζ − f_ζ'‖ / scale)
    CompleteGraph()      1
    Precomputed(W)       W[ζ, ζ'], experts first, then the unlabelled ones (base.py)
    NearestNeighbours(k) 1 if one is among the k nearest of the other, else 0 (neighbours.py)

Any callable (trajectories, counts) → (n, n) matrix can take their place.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from messirl._checks import check_number
from messirl._parameters import default
from messirl._types import Floats
from messirl.data.chunked_reduce import Found, pieces, run_pass
from messirl.similarity.approximate_penalty import SEED, kernel_penalty
from messirl.similarity.base import Similarity
from messirl.similarity.kernel_base import Kernel
from messirl.similarity.standardize import ROUNDING, Points, points_of

TOL = 1e-3  # relative error of the penalty of many trajectories
ALL_PAIRS = 10_000  # trajectories up to which the median is that of all pairs, which are held at once
PAIRS = 200_000  # pairs that are sampled for the median where there are more
FETCHED = 2_000_000  # numbers of these pairs that are fetched at once


@dataclass(frozen=True)
class RBF(Similarity):
    """exp(−‖Δ‖²/2σ), Δ the difference of two trajectories' feature counts; σ and not σ², as the paper has it.

    Parameters
    ----------
    sigma : float or "median"
        The width; "median" is the median of ‖Δ‖² over all pairs (over 200,000 of them for more than 10,000
        trajectories).
    standardise : bool
        Whether counts are measured in units of their spread over the trajectories.
    tol : float
        The relative error that the penalty of more than 30,000 trajectories may have; 0: exact, however long it takes.

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

    sigma: float | str = default("sigma")
    standardise: bool = False
    tol: float = field(default=TOL, kw_only=True, repr=False)

    of_counts = True

    def on(self, trajectories: Any, counts: Floats) -> Kernel:
        """Return the blocks exp(−‖Δ‖²/2σ); "median" and standardised units are taken over the whole set."""
        points = points_of(counts, standardise=self.standardise)
        sigma = bandwidth(points) if self.sigma == "median" else check_number("sigma", self.sigma, above=0.0)
        return Kernel(points, functools.partial(gaussian, sigma))

    def penalty(self, trajectories: Any, counts: Floats) -> Floats:
        """Return the matrix M (d, d) of Eq. 5, for many trajectories within a relative error of `tol`."""
        return kernel_penalty(self.on(trajectories, counts), counts, check_number("tol", self.tol, least=0.0))


DEFAULT = RBF(standardise=True)  # where no other similarity is given


@dataclass(frozen=True)
class Exponential(Similarity):
    """exp(−‖Δ‖/scale), Δ the difference of two trajectories' feature counts.

    Parameters
    ----------
    scale : float
        The distance at which the similarity is 1/e.
    standardise : bool
        Whether counts are measured in units of their spread over the trajectories.
    tol : float
        The relative error that the penalty of more than 30,000 trajectories may have; 0: exact, however long it takes.

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
    tol: float = field(default=TOL, kw_only=True, repr=False)

    of_counts = True

    def on(self, trajectories: Any, counts: Floats) -> Kernel:
        """Return the blocks exp(−‖Δ‖/scale); standardised units are taken over the whole set."""
        points = points_of(counts, standardise=self.standardise)
        return Kernel(points, functools.partial(laplacian, check_number("scale", self.scale, above=0.0)))

    def penalty(self, trajectories: Any, counts: Floats) -> Floats:
        """Return the matrix M (d, d) of Eq. 5, for many trajectories within a relative error of `tol`."""
        return kernel_penalty(self.on(trajectories, counts), counts, check_number("tol", self.tol, least=0.0))


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

    of_counts = True

    def on(self, trajectories: Any, counts: Floats) -> Kernel:
        """Return blocks of ones."""
        return Kernel(np.zeros((len(counts), 1)), np.ones_like)

    def penalty(self, trajectories: Any, counts: Floats) -> Floats:
        """Return the matrix M of Eq. 5: twice the scatter of the counts about their mean."""
        total, _ = run_pass(functools.partial(scatter_around, counts.mean(axis=0)), counts, counts.shape[1])
        return np.asarray(2.0 * total)


def scatter_around(mean: Floats, rows: Floats) -> Found:
    """Return Σ (f − mean)(f − mean)ᵀ over rows f, (d, d)."""
    around = rows - mean
    return around.T @ around, None


def gaussian(sigma: float, square: Floats) -> Floats:
    """Return exp(−square / 2σ), computed in place."""
    square /= -2.0 * sigma
    return np.exp(square, out=square)


def laplacian(scale: float, square: Floats) -> Floats:
    """Return exp(−√square / scale), computed in place."""
    np.sqrt(square, out=square)
    square /= -scale
    return np.exp(square, out=square)


def bandwidth(points: Points | Floats) -> float:
    """Return the median of ‖Δ‖² over all pairs of different trajectories, or over a random sample if there are many.

    The sample is always the same for a set; its median lies between the 49.8 and the 50.2 % quantile of all pairs with
    95 % probability.
    """
    if len(points) < 2:
        raise ValueError("sigma='median' needs at least two trajectories: give sigma a number")
    some = pdist(points[:], "sqeuclidean") if len(points) <= ALL_PAIRS else sampled_pairs(points)
    median = float(np.median(some))
    reach = points.reach() if isinstance(points, Points) else np.abs(points).max(axis=0)
    if np.sqrt(median) <= ROUNDING * float(np.linalg.norm(reach)):
        raise ValueError("sigma='median' is 0: at least half of all pairs have equal counts; give sigma a number")
    return median


def sampled_pairs(points: Points | Floats) -> Floats:
    """Return ‖Δ‖² of pairs of different trajectories drawn at random, always the same ones."""
    rng = np.random.default_rng(SEED)
    n = len(points)
    first = rng.integers(n, size=PAIRS)
    second = (first + rng.integers(1, n, size=PAIRS)) % n
    parts = pieces(PAIRS, points[:1].shape[1], FETCHED)
    return np.concatenate([((points[first[part]] - points[second[part]]) ** 2).sum(axis=1) for part in parts])
