"""Ways along neighbours: what lies between two places that a track jumps between is filled in, on a straight line."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.csgraph import breadth_first_order

from messirl._types import Flags, Ints
from messirl.io.raw.places import Places

FINE = 12  # looks per distance of neighbours along a line
CHUNK = 2_000_000  # looks at a time


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
        begin, end = (self.mapping.centres[place] for place in (source, target))
        number = np.ceil(np.linalg.norm(end - begin, axis=1) * FINE / self.spacing).astype(np.int64) + 2
        ways: list[list[int] | None] = []
        lo = 0
        while lo < number.size:
            hi = max(int(np.searchsorted(np.cumsum(number[lo:]), CHUNK)), 1) + lo
            part = number[lo:hi]
            which = np.repeat(np.arange(part.size), part)
            start = np.cumsum(part) - part
            share = (np.arange(which.size) - start[which]) / (part[which] - 1)
            line = begin[lo:hi][which] * (1 - share)[:, None] + end[lo:hi][which] * share[:, None]
            crossed = self.mapping.transform(line)
            crossed[start], crossed[start + part - 1] = source[lo:hi], target[lo:hi]
            for piece in np.split(crossed, start[1:]):
                ways.append(self._whole(piece[np.append(True, piece[1:] != piece[:-1])]))
            lo = hi
        return ways

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
    return [int(both[(a + b) // 2 % both.size])] if both.size else []


def _searched(near: Any, a: int, b: int) -> list[int] | None:
    before = breadth_first_order(near, a, return_predecessors=True)[1]
    way, here = [], int(before[b])
    while here >= 0 and here != a:
        way.append(here)
        here = int(before[here])
    return way[::-1] if here == a else None
