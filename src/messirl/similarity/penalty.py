"""The pairwise penalty, Eq. 5:

    R(θ) = 1/(2n) Σ_{ζ,ζ'} s(ζ, ζ') (θᵀ(f_ζ − f_ζ'))² = ½ θᵀ M θ,     M = (2/n) Fᵀ (D − W) F,  D = diag(W 1)

M is built once, block of rows by block of rows; no pair is looked at again while optimising. The printed Eq. 7 is not
the gradient of R (it adds a number to a vector, squared, with the wrong sign): the gradient is M θ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from messirl._types import Floats
from messirl.similarity.kernels import CompleteGraph, Rows, checked_weights

BLOCK = 2_000_000  # similarities held at once


def penalty_matrix(counts: npt.ArrayLike, weights: Any) -> Floats:
    """Matrix M of the pairwise penalty, Eq. 5: R(θ) = ½ θᵀ M θ.

        M = (2/n) Fᵀ (D − W) F,   D = diag(W 1)

    counts  F : (n, d) feature counts of every trajectory, experts first
    weights W : (n, n) similarities s(ζ, ζ'), dense or sparse, or a similarity such as RBF(5.0), streamed in blocks
    """
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2 or len(table) == 0:
        raise ValueError(f"counts have shape {table.shape}: give (n, d), at least one trajectory")
    if not np.isfinite(table).all():
        raise ValueError("counts hold a value that is not finite")
    n = len(table)
    centred = table - table.mean(axis=0)  # differences are all that matters; centring keeps them from cancelling
    if isinstance(weights, CompleteGraph):
        return np.asarray(2.0 * centred.T @ centred)
    rows: Rows
    if hasattr(weights, "rows"):
        rows = weights.rows(table)
    else:
        matrix = checked_weights(weights, n)

        def rows(block: slice) -> Any:
            return matrix[block]

    height = max(1, BLOCK // n)
    total = np.zeros((table.shape[1], table.shape[1]))
    for lo in range(0, n, height):
        block = slice(lo, min(lo + height, n))
        w = rows(block)
        degree = np.asarray(w.sum(axis=1)).ravel()
        total += centred[block].T @ (degree[:, None] * centred[block] - np.asarray(w @ centred))
    return (total + total.T) / n


def pairwise_penalty(theta: npt.ArrayLike, counts: npt.ArrayLike, weights: Any) -> float:
    """R(θ) by Eq. 5."""
    t = np.asarray(theta, dtype=np.float64)
    return float(0.5 * t @ penalty_matrix(counts, weights) @ t)


def similarity_penalty(similarity: Any, trajectories: Any, counts: Floats) -> Floats:
    """M for any similarity: streamed where it can be, else from the matrix that a callable returns."""
    if hasattr(similarity, "rows") and not isinstance(similarity, type):
        return penalty_matrix(counts, similarity)
    if not callable(similarity) or isinstance(similarity, type):
        raise TypeError(
            f"similarity must be RBF, Exponential, CompleteGraph, Precomputed or a callable (trajectories, counts) -> "
            f"matrix, not {similarity!r}"
        )
    return penalty_matrix(counts, similarity(trajectories, counts))
