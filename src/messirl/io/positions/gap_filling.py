"""Gap filling: the cells between two cells that are not neighbours, along the straight line between them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.csgraph import breadth_first_order

from messirl._types import Flags, Ints
from messirl.io.positions.spatial_cells import CellMap

FINE = 12  # samples along a line per distance of neighbours
CHUNK = 5_000  # lines per batch
ASIDE = 1e-3 * np.array([0.8776, 0.4794])  # offset of lines, in a direction that is special to no lattice


class PathFinder:
    """Paths between cells, cached.

    A path follows the straight line between the centres of two cells. Where the line passes a corner, so that two
    successive cells are not neighbours, it takes a shortest path between them.
    """

    def __init__(self, places: CellMap) -> None:
        assert places.mapping is not None, "cells need coordinates"
        self.mapping, self.near, self.spacing = places.mapping, places.near, places.spacing
        self.keys = np.repeat(np.arange(self.near.shape[0]), np.diff(self.near.indptr)) * self.near.shape[0]
        self.keys += self.near.indices
        self.known: dict[tuple[int, int], list[int] | None] = {}

    def are_neighbours(self, source: Ints, target: Ints) -> Flags:
        """Check which pairs are neighbours."""
        key = source * self.near.shape[0] + target
        if not self.keys.size:
            return np.zeros(key.shape, dtype=bool)
        found: Flags = self.keys[np.minimum(np.searchsorted(self.keys, key), self.keys.size - 1)] == key
        return found

    def between(self, source: Ints, target: Ints) -> list[list[int] | None]:
        """Return the cells strictly between each source and target; None if there is no path."""
        n = self.near.shape[0]
        pairs, which = np.unique(source * n + target, return_inverse=True)
        parts = np.array_split(pairs, 1 + pairs.size // CHUNK)
        found = [way for some in parts for way in self._lines(*np.divmod(some, n))]
        return [found[i] for i in which]

    def _lines(self, source: Ints, target: Ints) -> list[list[int] | None]:
        begin, end = (self.mapping.centres[place] for place in (source, target))
        looks = np.ceil(np.linalg.norm(end - begin, axis=1) * FINE / self.spacing).astype(np.int64) + 2
        which, start = np.repeat(np.arange(looks.size), looks), np.cumsum(looks) - looks
        share = ((np.arange(which.size) - start[which]) / (looks[which] - 1))[:, None]
        # Lines between centres pass corners and run along edges, where rounding would decide: shift them slightly.
        aside = np.where(_tie_break(source, target) % 2, self.spacing, -self.spacing)[which, None] * ASIDE
        crossed = self.mapping.transform(begin[which] * (1 - share) + end[which] * share + aside)
        crossed[start], crossed[start + looks - 1] = source, target
        lines = np.split(crossed, start[1:])
        return [self._fill_corners(line[np.append(True, line[1:] != line[:-1])]) for line in lines]

    def _fill_corners(self, line: Ints) -> list[int] | None:
        """Return the cells of a line without its ends, with gaps at corners filled."""
        way: list[int] = []
        for a, b, touch in zip(
            line[:-1].tolist(), line[1:].tolist(), self.are_neighbours(line[:-1], line[1:]), strict=True
        ):
            if not touch:
                corner = self._shortest(a, b)
                if corner is None:
                    return None
                way += corner
            way.append(b)
        return way[:-1]

    def _shortest(self, a: int, b: int) -> list[int] | None:
        if (a, b) not in self.known:
            self.known[a, b] = _common_neighbour(self.near, a, b) or _shortest_path(self.near, a, b)
        return self.known[a, b]


def _common_neighbour(near: Any, a: int, b: int) -> list[int]:
    """Return a common neighbour; choose among several in turn, so that no direction is preferred."""
    both = np.intersect1d(*(near.indices[near.indptr[s] : near.indptr[s + 1]] for s in (a, b)))
    return [int(both[_tie_break(a, b) % both.size])] if both.size else []


def _tie_break(a: Any, b: Any) -> Any:
    """Return a symmetric number that varies from cell to cell, to break ties between equal paths."""
    return (a + b) // 2


def _shortest_path(near: Any, a: int, b: int) -> list[int] | None:
    before = breadth_first_order(near, a, return_predecessors=True)[1]
    way, here = [], int(before[b])
    while here >= 0 and here != a:
        way.append(here)
        here = int(before[here])
    return way[::-1] if here == a else None
