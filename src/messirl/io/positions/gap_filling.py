"""Ways along neighbours: what lies between two places that a track jumps between is filled in, on a straight line."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.csgraph import breadth_first_order

from messirl._types import Flags, Ints
from messirl.io.positions.spatial_cells import Places

FINE = 12  # looks per distance of neighbours along a line
CHUNK = 5_000  # lines at a time
ASIDE = 1e-3 * np.array([0.8776, 0.4794])  # how far lines move aside, in a direction of no lattice


class Ways:
    """Ways between places, each found once.

    A way follows the straight line between the middles of two places. Where the line passes a corner, so that two
    places on it do not lie side by side, a shortest way between these two is taken.
    """

    def __init__(self, places: Places) -> None:
        assert places.mapping is not None, "it is known where places are"
        self.mapping, self.near, self.spacing = places.mapping, places.near, places.spacing
        self.keys = np.repeat(np.arange(self.near.shape[0]), np.diff(self.near.indptr)) * self.near.shape[0]
        self.keys += self.near.indices
        self.known: dict[tuple[int, int], list[int] | None] = {}

    def beside(self, source: Ints, target: Ints) -> Flags:
        """Which pairs lie side by side."""
        key = source * self.near.shape[0] + target
        if not self.keys.size:
            return np.zeros(key.shape, dtype=bool)
        found: Flags = self.keys[np.minimum(np.searchsorted(self.keys, key), self.keys.size - 1)] == key
        return found

    def between(self, source: Ints, target: Ints) -> list[list[int] | None]:
        """The places between each pair of source and target, neither included; None where there is no way."""
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
        # Lines between middles pass corners and run along edges, where rounding would decide: they move aside.
        aside = np.where(_turn(source, target) % 2, self.spacing, -self.spacing)[which, None] * ASIDE
        crossed = self.mapping.transform(begin[which] * (1 - share) + end[which] * share + aside)
        crossed[start], crossed[start + looks - 1] = source, target
        lines = np.split(crossed, start[1:])
        return [self._whole(line[np.append(True, line[1:] != line[:-1])]) for line in lines]

    def _whole(self, line: Ints) -> list[int] | None:
        """The places of a line without its ends, corners filled in."""
        way: list[int] = []
        for a, b, touch in zip(line[:-1].tolist(), line[1:].tolist(), self.beside(line[:-1], line[1:]), strict=True):
            if not touch:
                corner = self._shortest(a, b)
                if corner is None:
                    return None
                way += corner
            way.append(b)
        return way[:-1]

    def _shortest(self, a: int, b: int) -> list[int] | None:
        if (a, b) not in self.known:
            self.known[a, b] = _common(self.near, a, b) or _searched(self.near, a, b)
        return self.known[a, b]


def _common(near: Any, a: int, b: int) -> list[int]:
    """A place beside both; of several, one or the other in turn, so that no direction is preferred."""
    both = np.intersect1d(*(near.indices[near.indptr[s] : near.indptr[s + 1]] for s in (a, b)))
    return [int(both[_turn(a, b) % both.size])] if both.size else []


def _turn(a: Any, b: Any) -> Any:
    """A number that changes from place to place and is the same for both directions: decides between equal ways."""
    return (a + b) // 2


def _searched(near: Any, a: int, b: int) -> list[int] | None:
    before = breadth_first_order(near, a, return_predecessors=True)[1]
    way, here = [], int(before[b])
    while here >= 0 and here != a:
        way.append(here)
        here = int(before[here])
    return way[::-1] if here == a else None
