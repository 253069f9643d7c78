"""Discretisation of continuous observations: a grid of boxes, hexagons, or the nearest of some centres.

A mapping is stored with its problem (`to_dict`, `from_dict`), so that later observations get the same states.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from messirl._checks import check_number, is_whole
from messirl._types import Floats, Ints
from messirl.data.errors import InputError
from messirl.data.trajectories import Trajectories
from messirl.io.recordings.recording import Recording, check_recordings, ended

OUTSIDE = ("clip", "error")
HIGH = 3**0.5 / 2  # distance between rows of hexagons, in widths


class Grid:
    """Grid of boxes: dimension j is cut at edges e_0 < … < e_m into m intervals [e_i, e_{i+1}), the last one closed.

    Boxes are numbered from 0, the last dimension counting fastest.

    Parameters
    ----------
    edges : sequence of arrays
        The edges of each dimension, finite and increasing.
    outside : {"clip", "error"}
        Treatment of a point beyond the edges: assign it to the nearest interval, or raise an error.

    Examples
    --------
    >>> from messirl.io import Grid
    >>> grid = Grid([[0.0, 1.0, 2.0], [0.0, 10.0]])
    >>> grid.n_states
    2
    >>> grid.transform([[0.5, 3.0], [1.0, 3.0], [7.0, 3.0]])
    array([0, 1, 1])
    """

    def __init__(self, edges: Sequence[npt.ArrayLike], *, outside: str = "clip") -> None:
        self.edges = [np.asarray(cuts, dtype=np.float64) for cuts in edges]
        self.outside = outside
        if not self.edges:
            raise InputError("Grid", "there are no edges", "give an array of them for each dimension")
        for j, cuts in enumerate(self.edges):
            if cuts.ndim != 1 or cuts.size < 2 or not np.isfinite(cuts).all() or (np.diff(cuts) <= 0).any():
                raise InputError("Grid", f"edges {j} are {cuts}", "give two or more, finite and increasing")
        if outside not in OUTSIDE:
            raise InputError("Grid", f"outside={outside!r}", f"choose from {', '.join(map(repr, OUTSIDE))}")

    @classmethod
    def fit(cls, observations: Any, bins: int | Sequence[int], *, outside: str = "clip") -> Grid:
        """Make `bins` equal intervals from the smallest to the largest observation in each dimension."""
        points = _stacked(observations)
        k = points.shape[1]
        counts = [bins] * k if isinstance(bins, int | np.integer) else list(bins)
        if len(counts) != k or any(count < 1 for count in counts):
            raise InputError("Grid", f"bins={bins}", f"give one number >= 1, or one for each of {k} dimensions")
        low, high = points.min(axis=0), points.max(axis=0)
        flat = low == high
        if flat.any():
            j = int(np.argmax(flat))
            raise InputError("Grid", f"dimension {j} is constant ({low[j]:g})", "drop it, or give the edges")
        return cls([np.linspace(low[j], high[j], counts[j] + 1) for j in range(k)], outside=outside)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of intervals in each dimension."""
        return tuple(cuts.size - 1 for cuts in self.edges)

    @property
    def n_states(self) -> int:
        """Number of boxes, S."""
        return int(np.prod(self.shape))

    @property
    def centres(self) -> Floats:
        """Centre of each box, (S, k)."""
        middles = [(cuts[:-1] + cuts[1:]) / 2 for cuts in self.edges]
        return np.stack([axis.ravel() for axis in np.meshgrid(*middles, indexing="ij")], axis=1)

    def transform(self, observations: npt.ArrayLike) -> Ints:
        """Return the box of each point, (N, k) → (N,)."""
        points = _points(observations, len(self.edges))
        cells = []
        for j, cuts in enumerate(self.edges):
            x = points[:, j]
            beyond = (x < cuts[0]) | (x > cuts[-1])
            if self.outside == "error" and beyond.any():
                i = int(np.argmax(beyond))
                what = f"{x[i]:g} lies outside [{cuts[0]:g}, {cuts[-1]:g}] in dimension {j}"
                raise InputError(f"observations[{i}]", what, "widen the edges")
            cells.append(np.clip(np.searchsorted(cuts, x, side="right") - 1, 0, cuts.size - 2))
        return np.asarray(np.ravel_multi_index(cells, self.shape), dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Return the grid as plain lists, the input of `from_dict`."""
        return {"kind": "grid", "edges": [cuts.tolist() for cuts in self.edges], "outside": self.outside}


class KMeans:
    """Nearest of S centres. Every point has one, however far away it is: no point is outside.

    Parameters
    ----------
    centres : array (S, k)
        A point gets the index of its nearest centre.

    Examples
    --------
    >>> from messirl.io import KMeans
    >>> KMeans([[0.0, 0.0], [5.0, 5.0]]).transform([[1.0, 0.0], [9.0, 9.0]])
    array([0, 1])
    >>> KMeans.fit([[0.0], [0.2], [5.0], [5.2]], n_states=2).centres
    array([[0.1],
           [5.1]])
    """

    def __init__(self, centres: npt.ArrayLike) -> None:
        self.centres: Floats = np.asarray(centres, dtype=np.float64)
        if self.centres.ndim != 2 or 0 in self.centres.shape or not np.isfinite(self.centres).all():
            raise InputError("KMeans", f"centres have shape {self.centres.shape}", "give finite numbers (S, k)")

    @classmethod
    def fit(cls, observations: Any, n_states: int, *, random_state: int = 0) -> KMeans:
        """Fit centres by scikit-learn's k-means, sorted so that a seed reproduces their order."""
        from sklearn.cluster import KMeans as Clusters

        points = _stacked(observations)
        different = len(np.unique(points, axis=0))
        if not is_whole(n_states) or not 1 <= n_states <= different:
            raise InputError("KMeans", f"n_states={n_states!r}", f"give 1 … {different}, the number of distinct points")
        centres = Clusters(n_states, n_init=10, random_state=random_state).fit(points).cluster_centers_
        low, size = points.min(axis=0), np.ptp(points, axis=0)
        places = np.round((centres - low) / np.where(size > 0, size, 1.0), 9)  # rounding must not change the order
        return cls(centres[np.lexsort(places.T[::-1])])

    @property
    def n_states(self) -> int:
        """Number of centres, S."""
        return len(self.centres)

    def transform(self, observations: npt.ArrayLike) -> Ints:
        """Return the index of the nearest centre of each point, (N, k) → (N,)."""
        points = _points(observations, self.centres.shape[1])
        return np.asarray(cKDTree(self.centres).query(points)[1], dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Return the centres as plain lists, the input of `from_dict`."""
        return {"kind": "kmeans", "centres": self.centres.tolist()}


class Hexagons:
    """Hexagonal cells in rows, every second row shifted by half a width: a point belongs to the nearest centre.

    Centre (r, c) is at x = x₀ + w (c + ½ [r odd]), y = y₀ + w (√3/2) r, and has the index r · columns + c. A point
    beyond the last hexagon belongs to the nearest one of its row.

    Parameters
    ----------
    width : float
        The distance w between the centres of neighbours.
    origin : pair of float
        The first centre (x₀, y₀).
    shape : pair of int
        Rows and columns.

    Examples
    --------
    >>> from messirl.io import Hexagons
    >>> cells = Hexagons.fit([[0.0, 0.0], [3.0, 2.0]], width=1.0)
    >>> cells.shape
    (4, 5)
    >>> cells.transform([[0.0, 0.0], [0.6, 0.8]])
    array([0, 5])
    """

    def __init__(self, width: float, origin: Sequence[float], shape: Sequence[int]) -> None:
        self.width, self.origin = float(width), (float(origin[0]), float(origin[1]))
        self.shape = int(shape[0]), int(shape[1])
        if not (np.isfinite([self.width, *self.origin]).all() and self.width > 0 and min(self.shape) >= 1):
            what = f"width={width}, origin={origin}, shape={shape}"
            raise InputError(
                "Hexagons", what, "give a width > 0, an origin of two numbers, and a shape with rows and columns >= 1"
            )

    @classmethod
    def fit(cls, observations: Any, width: float) -> Hexagons:
        """Cover all observations (N, 2) with hexagons, the first centre at their smallest x and y."""
        width = check_number("width", width, above=0.0)
        points = _stacked(observations)
        if points.shape[1] != 2:
            raise InputError("Hexagons", f"points have {points.shape[1]} numbers", "give x and y")
        low, size = points.min(axis=0), np.ptp(points, axis=0)
        return cls(width, low, (int(np.ceil(size[1] / (width * HIGH))) + 1, int(np.ceil(size[0] / width)) + 2))

    @property
    def n_states(self) -> int:
        """Number of hexagons, S."""
        return self.shape[0] * self.shape[1]

    @property
    def centres(self) -> Floats:
        """Centre of each hexagon, (S, 2)."""
        return self._centre(*np.divmod(np.arange(self.n_states), self.shape[1]))

    def _centre(self, row: Ints, column: Ints) -> Floats:
        x = self.origin[0] + self.width * (column + 0.5 * (row % 2))
        return np.column_stack([x, self.origin[1] + self.width * HIGH * row])

    def transform(self, observations: npt.ArrayLike) -> Ints:
        """Return the hexagon of each point, (N, 2) → (N,)."""
        points = _points(observations, 2)
        below = np.floor((points[:, 1] - self.origin[1]) / (self.width * HIGH)).astype(np.int64)
        found, nearest = np.zeros(len(points), dtype=np.int64), np.full(len(points), np.inf)
        for row in (below, below + 1):  # the nearest centre is in one of the two rows around a point
            row = np.clip(row, 0, self.shape[0] - 1)
            column = np.rint((points[:, 0] - self.origin[0]) / self.width - 0.5 * (row % 2)).astype(np.int64)
            column = np.clip(column, 0, self.shape[1] - 1)
            distance = np.linalg.norm(points - self._centre(row, column), axis=1)
            closer = distance < nearest
            found[closer] = (row * self.shape[1] + column)[closer]
            nearest = np.minimum(nearest, distance)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the hexagons as plain numbers, the input of `from_dict`."""
        return {"kind": "hexagons", "width": self.width, "origin": list(self.origin), "shape": list(self.shape)}


def from_dict(data: Mapping[str, Any]) -> Grid | KMeans | Hexagons:
    """Restore a mapping from the output of `to_dict`."""
    try:
        if data["kind"] == "grid":
            return Grid(data["edges"], outside=data["outside"])
        if data["kind"] == "hexagons":
            return Hexagons(data["width"], data["origin"], data["shape"])
        if data["kind"] == "kmeans":
            return KMeans(data["centres"])
    except KeyError as missing:
        raise InputError("mapping", f"it has no {missing}", "give what to_dict returned") from None
    raise InputError("mapping", f"kind is {data['kind']!r}", "choose 'grid', 'hexagons' or 'kmeans'")


def discretise(
    recordings: Iterable[Recording],
    states: Grid | KMeans | Hexagons,
    *,
    actions: Grid | KMeans | None = None,
    end_state: int | None = None,
) -> Trajectories:
    """Convert recordings to trajectories, mapping observations to states by `states`.

    actions : discretises continuous actions (T, m); None: they are integers (T,) already
    end_state : replaces the last state of a recording that terminated; `states.n_states` is the next free number
    """
    rows: list[Any] = []
    moves: list[Any] = []
    for i, one in enumerate(check_recordings(recordings)):
        taken = one.actions
        if actions is not None:
            taken = actions.transform(taken)
        elif taken.dtype.kind not in "iu" or taken.ndim != 1:
            where, what = f"recording {i if one.id is None else one.id}", f"{taken.dtype} of shape {taken.shape}"
            raise InputError(where, f"its actions are {what}", "number them with actions=")
        rows.append(ended(states.transform(one.observations), one, end_state))
        moves.append(taken)
    return Trajectories.from_lists(rows, moves)


def _stacked(observations: Any) -> Floats:
    """Stack all observations of an array or a list of recordings as points (N, k)."""
    if isinstance(observations, Sequence) and observations and isinstance(observations[0], Recording):
        observations = np.concatenate([_points(one.observations) for one in check_recordings(observations)])
    points = _points(observations)
    if not len(points):
        raise InputError("observations", "there are none", "give at least one")
    return points


def _points(observations: Any, k: int | None = None) -> Floats:
    raw = np.asarray(observations)
    if raw.dtype.kind not in "fiub":
        raise TypeError(f"observations must be numbers, not {raw.dtype}")
    points = raw.astype(np.float64)
    if points.ndim == 1:
        points = points[:, None]
    if points.ndim != 2 or (k is not None and points.shape[1] != k):
        raise InputError("observations", f"has shape {raw.shape}", f"give points (N, {'k' if k is None else k})")
    bad = ~np.isfinite(points).all(axis=1)
    if bad.any():
        i = int(np.argmax(bad))
        what, remedy = f"{points[i]} is not finite", "fill the gap, or cut the recording there"
        raise InputError(f"observations[{i}]", what, remedy)
    return points
