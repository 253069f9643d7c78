"""Cells of positions and their neighbours: squares, hexagons, k-means clusters or given points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from messirl._text import count_noun
from messirl._types import Flags, Floats, Ints
from messirl.data.errors import InputError
from messirl.io.recordings.discretise import Grid, Hexagons, KMeans

MOST = 1_000_000  # squares or hexagons
SAMPLE = 50_000  # maximum number of positions for k-means
SAME = 1e-6  # tolerance for rounding, relative to a cell
ASTRAY = 0.01  # maximum share of positions that can be outliers
APART = 10.0  # gap to an outlier, relative to the extent of all other positions


@dataclass(frozen=True, eq=False)
class CellMap:
    """Cells with their centres and neighbours.

    mapping : maps positions to cell numbers; None if cells have names but no coordinates
    near : (S, S) adjacency of cells, without self-loops
    spacing : distance between neighbours
    said : description in words
    labels : names of named cells
    lattice : whether a direction is the same action everywhere
    """

    mapping: Grid | Hexagons | KMeans | None
    near: Any  # scipy.sparse.csr_array of bool
    spacing: float
    said: str
    labels: list[str] | None = None
    lattice: bool = False

    @property
    def centres(self) -> Floats | None:
        """Centre of each cell, (S, 2)."""
        return None if self.mapping is None else self.mapping.centres


def check_outliers(xy: Floats, option: str) -> None:
    """Reject outliers, such as positions from a GPS receiver without satellites.

    Along x or y, at most a hundredth of the positions (or one) are outliers if their gap to all others exceeds ten
    times the extent of those.
    """
    some = np.arange(1, max(int(ASTRAY * len(xy)), 1) + 1)
    for name, values in zip("xy", np.sort(xy, axis=0).T, strict=True):
        for line in (values, -values[::-1]) if len(xy) > 2 * some[-1] else ():
            gap, extent = line[some] - line[some - 1], line[-1] - line[some]
            lost = np.flatnonzero((gap > APART * extent) & (extent > 0.0))
            if lost.size:
                i = int(lost[0])
                where = f"{gap[i]:.3g} away from all others in {name}, which extend over {extent[i]:.3g}"
                what = f"{count_noun(int(some[i]), 'position')} lie{'s' if some[i] == 1 else ''} {where}"
                raise InputError(option, what, "correct or remove them, or exclude them with `area`")


def squares(xy: Floats, size: float, neighbours: int, area: Floats | None) -> CellMap:
    """Return square cells with corners at multiples of their size, or starting at the corner of an area."""
    low, high = _bounds(xy, area)
    if area is None:  # the highest multiple begins one more square
        low = np.floor(low / size + SAME) * size
        count = np.floor((high - low) / size + SAME) + 1
    else:
        count = np.maximum(np.ceil((high - low) / size - SAME), 1)
    _check_number(count, "`grid`", size, low, high)
    grid = Grid([low[j] + size * np.arange(int(count[j]) + 1) for j in (0, 1)])
    i, j = np.divmod(np.arange(grid.n_states), grid.shape[1])
    steps = [(1, 0), (0, 1), (-1, 0), (0, -1)] + [(1, 1), (-1, 1), (-1, -1), (1, -1)] * (neighbours == 8)
    near = _lattice(i, j, [(np.full(i.size, a), np.full(i.size, b)) for a, b in steps], grid.shape)
    return CellMap(grid, near, size, f"squares of {size:g}", lattice=True)


def hexagons(xy: Floats, size: float, area: Floats | None) -> CellMap:
    """Return hexagonal cells whose centres are `size` apart."""
    low, high = _bounds(xy, area)
    _check_number((high - low) / size + 2, "`hexagons`", size, low, high)
    cells = Hexagons.fit(np.array([low, high]), size)
    row, column = np.divmod(np.arange(cells.n_states), cells.shape[1])
    odd, zero = row % 2, np.zeros(row.size, dtype=np.int64)
    steps = [(zero, zero + 1), (zero, zero - 1), *((zero + a, odd - b) for a in (1, -1) for b in (0, 1))]
    return CellMap(cells, _lattice(row, column, steps, cells.shape), size, f"hexagons of {size:g}", lattice=True)


def clusters(xy: Floats, n: int, seed: int) -> CellMap:
    """Return the Voronoi cells of k-means centres, computed from a sample if there are many positions."""
    some, said = xy, ""
    if len(xy) > SAMPLE:
        some = xy[np.sort(np.random.default_rng(seed).choice(len(xy), SAMPLE, replace=False))]
        said = f" of {SAMPLE:,} positions drawn with seed {seed}"
    different = len(np.unique(some, axis=0))
    if n > different:
        raise InputError("`kmeans`", f"is {n}, but there are only {different} distinct positions", "give fewer")
    mapping = KMeans.fit(some, n, random_state=seed)
    return CellMap(mapping, *_delaunay(mapping.centres), f"centres of k-means{said}")


def points(xy: Floats, at: Floats, labels: list[str], where: str) -> CellMap:
    """Return the Voronoi cells of given points: a position belongs to the nearest point."""
    mapping = KMeans(at)
    if len(np.unique(at, axis=0)) < len(at):
        raise InputError(where, "two points coincide", "keep one of them")
    # Positions far from all points, but near them with x and y exchanged, indicate swapped columns.
    here, there = (np.median(np.linalg.norm(p - at[mapping.transform(p)], axis=1)) for p in (xy, xy[:, ::-1]))
    size = float(np.ptp(at, axis=0).max())
    if here > size > 0 and there < here / 10:
        what = f"the positions lie {here:.3g} away from the points, but {there:.3g} with x and y exchanged"
        raise InputError(where, what, "exchange `x` and `y`")
    return CellMap(mapping, *_delaunay(at), f"the nearest of {len(at)} points in {where}", labels)


def labelled(labels: list[str], at: Floats | None, said: str) -> CellMap:
    """Return named cells; with coordinates, neighbours are those whose Voronoi cells touch."""
    if at is None:
        return CellMap(None, sp.csr_array((len(labels), len(labels)), dtype=bool), 1.0, said, labels)
    return CellMap(KMeans(at), *_delaunay(at), said, labels)


def _bounds(xy: Floats, area: Floats | None) -> tuple[Floats, Floats]:
    if area is None:
        return xy.min(axis=0), xy.max(axis=0)
    return area[0], area[1]


def _check_number(count: Any, option: str, size: float, low: Floats, high: Floats) -> None:
    if float(count[0]) * float(count[1]) > MOST:
        span = f"x from {low[0]:g} to {high[0]:g} and y from {low[1]:g} to {high[1]:g}"
        what = f"{size:g} makes {float(count[0]) * float(count[1]):.3g} cells over {span}"
        raise InputError(option, what, "give a larger one, or exclude outliers with `area`")


def _lattice(i: Ints, j: Ints, steps: Sequence[tuple[Ints, Ints]], shape: Sequence[int]) -> Any:
    """Return the adjacency of a lattice from the offsets (δi, δj) of neighbours."""
    source, target = [], []
    here = i * shape[1] + j
    for di, dj in steps:
        a, b = i + di, j + dj
        inside: Flags = (a >= 0) & (a < shape[0]) & (b >= 0) & (b < shape[1])
        source.append(here[inside])
        target.append((a * shape[1] + b)[inside])
    return _adjacency(np.concatenate(source), np.concatenate(target), i.size)


def _delaunay(at: Floats) -> tuple[Any, float]:
    """Return the Delaunay adjacency of points and the median distance of neighbours; on a line, the adjacent points."""
    from scipy.spatial import Delaunay, QhullError

    n = len(at)
    if n == 1:
        return sp.csr_array((1, 1), dtype=bool), 1.0
    try:
        corners = Delaunay(at).simplices
        pairs = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    except (QhullError, ValueError):  # fewer than three points, or all collinear
        order = np.lexsort(at.T)
        pairs = np.column_stack([order[:-1], order[1:]])
    near = _adjacency(np.append(pairs[:, 0], pairs[:, 1]), np.append(pairs[:, 1], pairs[:, 0]), n)
    return near, float(np.median(np.linalg.norm(at[pairs[:, 0]] - at[pairs[:, 1]], axis=1)))


def _adjacency(source: Ints, target: Ints, n: int) -> Any:
    pairs = source.astype(np.int32), target.astype(np.int32)  # int32: for every version of SciPy
    near = sp.csr_array((np.ones(source.size, dtype=bool), pairs), shape=(n, n))
    near.sum_duplicates()
    near.sort_indices()
    return near
