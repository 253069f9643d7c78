"""The pairwise penalty (Eq. 5).

    R(θ) = 1/(2n) Σ_{ζ,ζ'} s(ζ, ζ') (θᵀ(f_ζ − f_ζ'))² = ½ θᵀ M θ,     M = (2/n) Fᵀ (D − W) F,  D = diag(W 1)

M is computed once, block of rows by block of rows; no pair is needed again while optimising. For kernels and very many
trajectories it is estimated, to a given error (approximate_penalty.py). Eq. 7 as printed in the
paper is not the gradient of R (it adds a number to a vector, squared, with the wrong sign): the gradient is M θ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from messirl._types import Floats
from messirl.similarity.base import Precomputed, Similarity, as_similarity
from messirl.similarity.penalty_blocks import checked_counts


def penalty_matrix(counts: npt.ArrayLike, weights: Any) -> Floats:
    """Return the matrix M of the pairwise penalty, Eq. 5: R(θ) = ½ θᵀ M θ.

        M = (2/n) Fᵀ (D − W) F,   D = diag(W 1)

    counts  F : (n, d) feature counts of every trajectory, experts first
    weights W : (n, n) similarities s(ζ, ζ'), dense or sparse, or a similarity such as RBF(5.0), streamed in blocks
    """
    similarity = weights if isinstance(weights, Similarity) else Precomputed(weights)
    return similarity.penalty(None, checked_counts(counts))


def pairwise_penalty(theta: npt.ArrayLike, counts: npt.ArrayLike, weights: Any) -> float:
    """Return the penalty R(θ) of Eq. 5."""
    t = np.asarray(theta, dtype=np.float64)
    return float(0.5 * t @ penalty_matrix(counts, weights) @ t)


def similarity_penalty(similarity: Any, trajectories: Any, counts: Floats) -> Floats:
    """Return the matrix M of Eq. 5 for any similarity, including a user-defined function."""
    return as_similarity(similarity).penalty(trajectories, counts)
