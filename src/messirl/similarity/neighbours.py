"""A sparse nearest-neighbour graph as a similarity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from messirl._types import Floats
from messirl.data.chunked_reduce import pieces
from messirl.similarity.base import Precomputed, Similarity
from messirl.similarity.penalty_blocks import Block
from messirl.similarity.standardize import Points


@dataclass(frozen=True)
class NearestNeighbours(Similarity):
    """1 for two trajectories of which one is among the k nearest of the other, else 0.

    Distances are those of feature counts in units of their spread. The penalty does not approximate a kernel: it
    compares near trajectories only. Ties are broken arbitrarily.

    Parameters
    ----------
    k : int
        Number of neighbours of each trajectory; all others where there are fewer.

    References
    ----------
    Belkin, Niyogi: Laplacian Eigenmaps for Dimensionality Reduction and Data Representation, Neural Computation 15,
    2003, section 2.

    Examples
    --------
    >>> import numpy as np
    >>> from messirl.similarity import NearestNeighbours
    >>> counts = np.array([[0.0], [1.0], [3.0]])
    >>> NearestNeighbours(k=1)(None, counts).toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """

    k: int = 10

    of_counts = True

    def on(self, trajectories: Any, counts: Floats) -> Block:
        """Return the blocks of the graph, sparse."""
        return Precomputed(self.graph(counts)).on(trajectories, counts)

    def penalty(self, trajectories: Any, counts: Floats) -> Floats:
        """Return the matrix M (d, d) of Eq. 5, summed over pairs of neighbours."""
        pairs = sp.triu(self.graph(counts), k=1).tocoo()
        total = np.zeros((counts.shape[1],) * 2)
        for part in pieces(pairs.nnz, counts.shape[1]):
            apart = counts[pairs.row[part]] - counts[pairs.col[part]]
            total += apart.T @ apart
        return 2.0 / len(counts) * total

    def graph(self, counts: Floats) -> Any:
        """Return the matrix of similarities, sparse (n, n)."""
        from sklearn.neighbors import NearestNeighbors  # takes long to import, and few need it

        if isinstance(self.k, bool) or not isinstance(self.k, int | np.integer) or self.k < 1:
            raise ValueError(f"k={self.k!r}: give a whole number of neighbours, 1 or more")
        n = len(counts)
        if n < 2:
            return sp.csr_array((n, n))
        points = Points.of(counts, standardise=True)[:]
        found = sp.csr_array(NearestNeighbors(n_neighbors=min(int(self.k), n - 1)).fit(points).kneighbors_graph())
        return found.maximum(found.T)
