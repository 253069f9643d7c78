"""Public names and their modules, which are imported when first used."""

from messirl.similarity.approximate_penalty import ApproximationWarning as ApproximationWarning
from messirl.similarity.base import (
    Precomputed as Precomputed,
    Similarity as Similarity,
)
from messirl.similarity.fisher import FisherKernel as FisherKernel
from messirl.similarity.jaccard import VisitedStates as VisitedStates
from messirl.similarity.kernels import (
    RBF as RBF,
    CompleteGraph as CompleteGraph,
    Exponential as Exponential,
)
from messirl.similarity.neighbours import NearestNeighbours as NearestNeighbours
from messirl.similarity.penalty import (
    pairwise_penalty as pairwise_penalty,
    penalty_matrix as penalty_matrix,
)
from messirl.similarity.sequences import DynamicTimeWarping as DynamicTimeWarping, EditDistance as EditDistance
