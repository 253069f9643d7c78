"""Large problems on several threads: each takes some of the blocks of states, or some of many goals (goals.py).

Which parts there are follows from the problem alone, and what several of them add to one state is added in their order:
no result depends on the number of threads, to the last bit. A problem of few states is one part: handing work to a
thread and waiting for it takes longer than a sweep over some thousand states.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from messirl._compiled import threads
from messirl._types import Ints
from messirl.parallel import alone
from messirl.planning.kernels.bellman import B

STATES = 2**13  # of a part, at least
MOST = 8  # parts

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Part:
    """Blocks lo … hi−1, and the states first … last−1 among which all their successors are."""

    lo: int
    hi: int
    first: int
    last: int


def parts_of(off: Ints, idx: Any) -> tuple[Part, ...]:
    """The parts of a layout, all of about the same size."""
    blocks = off.size - 1
    edges = np.linspace(0, blocks, max(1, min(MOST, blocks * B // STATES)) + 1).astype(int)
    return tuple(_part(lo, hi, idx[off[lo] : off[hi]]) for lo, hi in pairwise(edges.tolist()))


def _part(lo: int, hi: int, met: Any) -> Part:
    return Part(lo, hi, int(met.min()), int(met.max()) + 1) if met.size else Part(lo, hi, 0, 0)


def in_parts(parts: Sequence[Part], work: Callable[[int, int, int], T]) -> list[T]:
    """What `work`, a kernel that lets other threads run, returns for each part: its number, lo and hi."""
    return on_threads(lambda one: work(*one), [(k, part.lo, part.hi) for k, part in enumerate(parts)])


def on_threads(work: Callable[[U], T], given: Sequence[U]) -> list[T]:
    """What `work`, which lets other threads run most of the time, returns for each that is given, in their order."""
    n = 1 if len(given) == 1 or alone() else min(len(given), threads())
    return [work(one) for one in given] if n == 1 else list(_pool(n).map(work, given))


@cache
def _pool(n: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n, thread_name_prefix="messirl")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a child has none of the threads
