"""Threads for large problems: each takes some of the blocks of states, or some of many goals (goal_conditioned.py).

The partition depends on the problem alone, and contributions of several parts to one state are added in their order: no
result depends on the number of threads, to the last bit. A problem of few states is one part, since handing work to a
thread takes longer than a sweep over some thousand states.
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
from messirl.parallel import must_use_one_thread
from messirl.planning.kernels.bellman import B

STATES = 2**13  # minimum number of states per part
MOST = 8  # maximum number of parts

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class BlockRange:
    """Blocks lo … hi−1, and the states first … last−1 that contain all their successors."""

    lo: int
    hi: int
    first: int
    last: int


def divide_blocks(off: Ints, idx: Any) -> tuple[BlockRange, ...]:
    """Return the parts of a layout, all of about the same size."""
    blocks = off.size - 1
    edges = np.linspace(0, blocks, max(1, min(MOST, blocks * B // STATES)) + 1).astype(int)
    return tuple(_part(lo, hi, idx[off[lo] : off[hi]]) for lo, hi in pairwise(edges.tolist()))


def _part(lo: int, hi: int, met: Any) -> BlockRange:
    return BlockRange(lo, hi, int(met.min()), int(met.max()) + 1) if met.size else BlockRange(lo, hi, 0, 0)


def run_in_parts(parts: Sequence[BlockRange], work: Callable[[int, int, int], T]) -> list[T]:
    """Return work(number, lo, hi) of each part; `work` is a kernel that releases the GIL."""
    return run_on_threads(lambda one: work(*one), [(k, part.lo, part.hi) for k, part in enumerate(parts)])


def run_on_threads(work: Callable[[U], T], given: Sequence[U]) -> list[T]:
    """Return `work` of each item, in order, on several threads; `work` must release the GIL most of the time."""
    n = 1 if len(given) == 1 or must_use_one_thread() else min(len(given), threads())
    return [work(one) for one in given] if n == 1 else list(_pool(n).map(work, given))


@cache
def _pool(n: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n, thread_name_prefix="messirl")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork
