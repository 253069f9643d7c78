"""How alike trajectories are, and the penalty on giving alike ones different rewards (paper, section 3, Eq. 5)."""

from messirl.similarity.kernels import DEFAULT, RBF, CompleteGraph, Exponential
from messirl.similarity.measure import Precomputed, Similarity, as_similarity
from messirl.similarity.penalty import pairwise_penalty, penalty_matrix, similarity_penalty

__all__ = [
    "DEFAULT",
    "RBF",
    "CompleteGraph",
    "Exponential",
    "Precomputed",
    "Similarity",
    "as_similarity",
    "pairwise_penalty",
    "penalty_matrix",
    "similarity_penalty",
]
