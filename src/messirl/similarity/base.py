"""The interface of similarities s(ζ, ζ') between the trajectories of a set.

A new similarity is a class that derives from `Similarity` and computes blocks of the matrix in `on`, from a set of
trajectories and their counts. It may use the trajectories themselves, and other data such as a fitted model. Given
matrices (`Precomputed`) and plain functions (trajectories, counts) → matrix are similarities as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from messirl._memory_guard import check_memory
from messirl._text import did_you_mean
from messirl._types import Floats
from messirl.similarity.penalty_blocks import ALL, Block, penalty_from
from messirl.similarity.registry import SIMILARITIES


class Similarity:
    """A measure of how similar two trajectories are: finite, not negative and symmetric.

    A new similarity derives from this class and defines `on`; everything else follows from that.

    Attributes
    ----------
    fixed : bool
        Whether it is known for one set of trajectories only, as a given matrix is, and cannot be computed for others.
    of_counts : bool
        Whether it depends on the counts only, so that the trajectories themselves may stay in files.

    References
    ----------
    Audiffren, Valko, Lazaric, Ghavamzadeh: Maximum Entropy Semi-Supervised Inverse Reinforcement Learning, IJCAI 2015,
    section 3.

    Examples
    --------
    Trajectories are more similar, the closer their lengths are.

    >>> import numpy as np
    >>> from messirl import Trajectories
    >>> from messirl.similarity import Similarity
    >>> class OfLengths(Similarity):
    ...     def on(self, trajectories, counts):
    ...         n = trajectories.lengths
    ...         return lambda rows, columns: np.exp(-abs(n[rows][:, None] - n[columns]))
    >>> walks = Trajectories.from_lists([[0, 1], [0, 1, 2], [0, 2]])
    >>> OfLengths()(walks, np.zeros((3, 1))).round(2)
    array([[1.  , 0.37, 1.  ],
           [0.37, 1.  , 0.37],
           [1.  , 0.37, 1.  ]])
    """

    fixed = False
    of_counts = False

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments it was made with, by name, as in scikit-learn."""
        kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
        names = [one.name for one in signature(type(self)).parameters.values() if one.kind in kinds]
        return {name: getattr(self, name) for name in names}

    def set_params(self, **params: Any) -> Self:
        """Return a similarity with other arguments; this one, which several estimators may share, is unchanged."""
        own = self.get_params()
        for name in params:
            if name not in own:
                known = ", ".join(own) or "none"
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; there are: {known}")
        return type(self)(**{**own, **params}) if params else self

    def __sklearn_clone__(self) -> Self:
        return self  # similarities are immutable, and one may hold a fitted model

    def on(self, trajectories: Any, counts: Floats) -> Block:
        """Return a function from rows and columns to that block (m, k) of the matrix, scaled by the whole set."""
        raise NotImplementedError

    def penalty(self, trajectories: Any, counts: Floats) -> Floats:
        """Return the matrix M (d, d) of Eq. 5, R(θ) = ½ θᵀ M θ."""
        return penalty_from(self.on(trajectories, counts), counts)

    def part(self, rows: npt.ArrayLike) -> Similarity:
        """Return the similarity for some of the trajectories, which may repeat; only a given matrix has to be cut."""
        return self

    def __call__(self, trajectories: Any, counts: npt.ArrayLike) -> Any:
        """Return the whole matrix, (n, n)."""
        check_pairs_memory(len(np.asarray(counts)))
        return self.on(trajectories, np.asarray(counts, dtype=np.float64))(ALL, ALL)


@dataclass(frozen=True, eq=False)
class Precomputed(Similarity):
    """A given matrix of similarities.

    Parameters
    ----------
    matrix : array or scipy.sparse (n, n)
        Finite, not negative, symmetric; experts first, then the unlabelled trajectories.

    References
    ----------
    Audiffren, Valko, Lazaric, Ghavamzadeh: Maximum Entropy Semi-Supervised Inverse Reinforcement Learning, IJCAI 2015,
    section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from messirl.similarity import Precomputed
    >>> counts = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
    >>> Precomputed(np.eye(3))(None, counts).round(2)
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """

    matrix: Any

    fixed = True
    of_counts = True

    def on(self, trajectories: Any, counts: Floats) -> Block:
        """Return the blocks of the given matrix, after checking that it fits the set of trajectories."""
        return _cut(checked_similarities(self.matrix, len(counts)))

    def part(self, rows: npt.ArrayLike) -> Precomputed:
        """Return the rows and columns of the matrix that belong to the trajectories `rows`."""
        which = np.asarray(rows)
        return Precomputed((self.matrix if sp.issparse(self.matrix) else np.asarray(self.matrix))[which][:, which])


@dataclass(frozen=True)
class Computed(Similarity):
    """A user-defined function (trajectories, counts) → matrix."""

    function: Callable[[Any, Any], Any]

    def on(self, trajectories: Any, counts: Floats) -> Block:
        """Return the blocks of the matrix that the function computes for the whole set."""
        check_pairs_memory(len(counts))
        matrix = self.function(trajectories, counts)
        return _cut(matrix if sp.issparse(matrix) else np.asarray(matrix))

    def penalty(self, trajectories: Any, counts: Floats) -> Floats:
        """Return the matrix M (d, d) of Eq. 5, after checking the matrix that the function computes."""
        check_pairs_memory(len(counts))
        return Precomputed(self.function(trajectories, counts)).penalty(trajectories, counts)


def check_pairs_memory(n: int) -> None:
    """Refuse a matrix of all pairs of n trajectories if there is too little memory."""
    check_memory(
        f"similarities of all pairs of {n} trajectories",
        8.0 * n * n,
        "take fewer, or a similarity that is computed in blocks: RBF, Exponential, or a class of your own",
    )


def as_similarity(given: Any) -> Similarity:
    """Return a similarity, given as such, by name, or as a plain function."""
    if isinstance(given, Similarity):
        return given
    if isinstance(given, str):
        return named_similarity(given)
    if isinstance(given, type) and issubclass(given, Similarity):
        raise TypeError(f"similarity is the class {given.__name__}: give an instance, {given.__name__}(...)")
    if not callable(given) or isinstance(given, type):
        raise TypeError(
            f"similarity must be RBF, Exponential, CompleteGraph, Precomputed or a callable (trajectories, counts) -> "
            f"matrix, or another of messirl.similarity, or the name of one, not {given!r}"
        )
    return Computed(given)


def named_similarity(name: str) -> Similarity:
    """Return the similarity of a name, with the defaults of the commands: "rbf" standardises counts."""
    if name not in SIMILARITIES:
        known = ", ".join(map(repr, SIMILARITIES))
        raise ValueError(f"similarity={name!r}: choose one of {known}{did_you_mean(name, SIMILARITIES)}")
    entry = SIMILARITIES[name]
    if entry.coordinates:
        raise ValueError(f"similarity={name!r} needs coordinates of the states: give {entry.kind}(coordinates)")
    return entry.make()


def _cut(matrix: Any) -> Block:
    return lambda rows, columns: matrix[rows] if columns is ALL else matrix[rows][:, columns]


def checked_similarities(weights: Any, n: int) -> Any:
    """Check a similarity matrix (n, n): finite, not negative, symmetric; sparse stays sparse."""
    matrix: Any = sp.csr_array(weights, dtype=np.float64) if sp.issparse(weights) else np.asarray(weights)
    if not sp.issparse(matrix) and matrix.dtype.kind not in "fiub":
        raise TypeError(f"a similarity must be numbers, not {matrix.dtype}")
    if matrix.shape != (n, n):
        raise ValueError(
            f"the similarity has shape {matrix.shape}, but there are {n} trajectories: it must be ({n}, {n})"
        )
    data: Any = matrix.data if sp.issparse(matrix) else matrix.astype(np.float64, copy=False)
    if not np.isfinite(data).all():
        raise ValueError(f"the similarity is not finite{_where(matrix, ~np.isfinite(data))}")
    if (data < 0).any():
        raise ValueError(f"the similarity is negative{_where(matrix, data < 0)}: it must be >= 0")
    largest = float(data.max()) if data.size else 0.0
    gap = abs(matrix - matrix.T)
    if float(gap.max()) > 1e-9 * max(largest, 1e-300):
        i, j = np.unravel_index(int(gap.argmax()), gap.shape)
        raise ValueError(
            f"the similarity is not symmetric: s({i}, {j}) = {matrix[i, j]:g} but s({j}, {i}) = {matrix[j, i]:g}; "
            "use (W + W.T) / 2"
        )
    return matrix


def _where(matrix: Any, flags: Any) -> str:
    if sp.issparse(matrix):
        return ""
    i, j = np.argwhere(flags)[0]
    return f" at ({i}, {j})"
