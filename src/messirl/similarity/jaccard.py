"""Overlap of the states that two trajectories visit, in any order:  s(ζ, ζ') = |A ∩ B| / |A ∪ B|."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from messirl._types import Floats
from messirl.similarity.base import Similarity
from messirl.similarity.penalty_blocks import Block
from messirl.similarity.sequences import sequences


@dataclass(frozen=True)
class VisitedStates(Similarity):
    """Jaccard index |A ∩ B| / |A ∪ B|, the share of the states visited by either of two trajectories that both visit.

    References
    ----------
    Jaccard: The distribution of the flora in the alpine zone, New Phytologist 11, 1912.

    Examples
    --------
    Of the four states that the first two visit they have two in common.

    >>> import numpy as np
    >>> from messirl import Trajectories
    >>> from messirl.similarity import VisitedStates
    >>> walks = Trajectories.from_lists([[0, 1, 2], [2, 1, 3, 1], [4, 4]])
    >>> VisitedStates()(walks, np.zeros((3, 1)))
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    """

    def on(self, trajectories: Any, counts: Floats) -> Block:
        """Return the blocks of overlaps."""
        states, n = sequences(self, trajectories), len(trajectories)
        whose = np.repeat(np.arange(n), trajectories.lengths)
        met = sp.csr_array((np.ones(states.size), (whose, states)), shape=(n, int(states.max(initial=0)) + 1))
        met.sum_duplicates()
        met.data[:] = 1.0  # each state counts once
        size = np.diff(met.indptr).astype(np.float64)

        def block(rows: Any, columns: Any) -> Floats:
            common = np.asarray((met[rows] @ met[columns].T).todense())
            return np.asarray(common / (size[rows][:, None] + size[columns] - common))

        return block
