"""Similarities of state sequences, rather than of feature counts:  s(ζ, ζ') = exp(−D(ζ, ζ') / scale).

    EditDistance         D: insertions, deletions and substitutions that make one the other, per step
    DynamicTimeWarping   D: distance of the places visited, along the best match in time, per step

Distances are divided by the length of the longer trajectory. Every pair is compared, in time proportional to the
product of their lengths: these are for some thousands of trajectories, not for millions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from messirl._checks import check_number, check_numeric_array
from messirl._memory_guard import check_memory
from messirl._types import Floats, Ints
from messirl.similarity._alignment_kernels import edit_distances, warped_distances
from messirl.similarity.base import Similarity
from messirl.similarity.penalty_blocks import Block


@dataclass(frozen=True)
class EditDistance(Similarity):
    """exp(−D/scale), D the edit distance of two sequences of states over the length of the longer one.

    D is in [0, 1]: the least number of insertions, deletions and substitutions of a state that make one sequence the
    other, per step. It needs neither coordinates nor features: states are the same or not.

    Parameters
    ----------
    scale : float
        The distance at which the similarity is 1/e.

    References
    ----------
    Levenshtein: Binary codes capable of correcting deletions, insertions, and reversals, Soviet Physics Doklady 10,
    1966.

    Examples
    --------
    The second differs from the first in one of four states, the third in two.

    >>> import numpy as np
    >>> from messirl import Trajectories
    >>> from messirl.similarity import EditDistance
    >>> walks = Trajectories.from_lists([[0, 1, 2, 3], [0, 2, 3], [0, 4, 4, 3]])
    >>> EditDistance(scale=0.5)(walks, np.zeros((3, 1))).round(2)
    array([[1.  , 0.61, 0.37],
           [0.61, 1.  , 0.37],
           [0.37, 0.37, 1.  ]])
    """

    scale: float = 0.5

    def on(self, trajectories: Any, counts: Floats) -> Block:
        """Return the blocks exp(−D/scale)."""
        scale, states = check_number("scale", self.scale, above=0.0), sequences(self, trajectories)
        return _blocks(trajectories, scale, partial(edit_distances, states, trajectories.offsets))


@dataclass(frozen=True, eq=False)
class DynamicTimeWarping(Similarity):
    """exp(−D/scale), D the distance of two trajectories along the best match in time, per step.

    Each state of one is matched with one or several successive states of the other, in their order, so that the sum of
    the distances between matched places is least; D is that sum over the length of the longer one. Staying longer in a
    state, as at a slower pace, therefore costs nothing.

    Parameters
    ----------
    coordinates : array (S, k)
        Coordinates of each state: places on a map or, with state features, `mdp.features`.
    scale : float
        The distance at which the similarity is 1/e, in the units of the coordinates.

    References
    ----------
    Sakoe, Chiba: Dynamic programming algorithm optimization for spoken word recognition, IEEE Transactions on
    Acoustics, Speech, and Signal Processing 26, 1978.

    Examples
    --------
    Five places on a line, one apart. The second walks as the first does but pauses once; the third stays behind.

    >>> import numpy as np
    >>> from messirl import Trajectories
    >>> from messirl.similarity import DynamicTimeWarping
    >>> walks = Trajectories.from_lists([[0, 1, 2, 3], [0, 1, 1, 2, 3], [0, 1, 1, 1]])
    >>> DynamicTimeWarping(np.arange(5.0)[:, None], scale=1.0)(walks, np.zeros((3, 1))).round(2)
    array([[1.  , 1.  , 0.47],
           [1.  , 1.  , 0.55],
           [0.47, 0.55, 1.  ]])
    """

    coordinates: npt.ArrayLike
    scale: float = 1.0

    def on(self, trajectories: Any, counts: Floats) -> Block:
        """Return the blocks exp(−D/scale)."""
        scale, states = check_number("scale", self.scale, above=0.0), sequences(self, trajectories)
        points = check_numeric_array("coordinates", self.coordinates)
        if points.ndim != 2 or not points.shape[1] or not np.isfinite(points).all():
            raise ValueError("coordinates must be finite numbers (S, k), one row per state and k >= 1")
        if states.size and states.max() >= len(points):
            raise ValueError(
                f"coordinates has {len(points)} rows, but trajectories visit state {states.max()}: give one per state"
            )
        met, place = np.unique(states, return_inverse=True)
        check_memory(
            f"distances between all pairs of the {met.size} states that trajectories visit",
            8.0 * met.size**2,
            "use EditDistance or VisitedStates, which need none",
        )
        apart = cdist(points[met], points[met])
        return _blocks(trajectories, scale, partial(warped_distances, place, trajectories.offsets, apart))


def _blocks(trajectories: Any, scale: float, distances: Callable[[Ints, Ints, bool], Floats]) -> Block:
    """Return the blocks exp(−D/scale), from a function of rows, columns and whether they are the same."""
    every = np.arange(len(trajectories))

    def block(rows: Any, columns: Any) -> Floats:
        some, others = every[rows], every[columns]
        return np.asarray(np.exp(distances(some, others, np.array_equal(some, others)) / -scale))

    return block


def sequences(similarity: Similarity, trajectories: Any) -> Ints:
    """Return the states of all trajectories, concatenated; raise a ValueError if only counts are given."""
    if trajectories is None:
        raise ValueError(f"{type(similarity).__name__} needs trajectories, but was given only their counts")
    if not len(trajectories):
        raise ValueError(f"{type(similarity).__name__} needs at least one trajectory, but was given none")
    return np.asarray(trajectories.states)
