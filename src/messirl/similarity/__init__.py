"""How alike trajectories are, and the penalty on giving alike ones different rewards (paper, section 3, Eq. 5)."""

from messirl.similarity.kernels import DEFAULT, RBF, CompleteGraph, Exponential, Precomputed, Similarity
from messirl.similarity.penalty import pairwise_penalty, penalty_matrix, similarity_penalty

__all__ = [
    "DEFAULT",
    "RBF",
    "CompleteGraph",
    "Exponential",
    "Precomputed",
    "Similarity",
    "pairwise_penalty",
    "penalty_matrix",
    "similarity_penalty",
]
