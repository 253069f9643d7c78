"""Times that can be compared: both sides in one process, in turns, on one thread, without garbage collection; medians.

CPU time of the process is taken, not the clock on the wall: what else runs on the machine then counts for less.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

ROUND = 0.05  # seconds a side is given in a round, at least: short calls are made several times


@dataclass(frozen=True)
class Comparison:
    """Median seconds of one call, ours and the other."""

    ours: float
    other: float

    @property
    def ratio(self) -> float:
        return self.other / self.ours


@contextmanager
def quiet() -> Iterator[None]:
    """One thread, no garbage collection."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        with threadpool_limits(limits=1):
            yield
    finally:
        if collecting:
            gc.enable()


def once(call: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """CPU seconds of one call, or seconds by another clock."""
    begin = clock()
    call()
    return clock() - begin


def compare(ours: Callable[[], object], other: Callable[[], object], rounds: int = 7) -> Comparison:
    """Ours, other, ours, other, …, after one call of each to warm up and to see how long it takes."""
    with quiet():
        calls = [max(1, int(ROUND / max(once(call), 1e-6))) for call in (ours, other)]
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(rounds):
            for call, often, kept in zip((ours, other), calls, times, strict=True):
                kept.extend(once(call) for _ in range(often))
    return Comparison(float(np.median(times[0])), float(np.median(times[1])))


def median(call: Callable[[], object], runs: int = 5) -> float:
    """Median CPU seconds of a call, after one to warm up."""
    with quiet():
        call()
        return float(np.median([once(call) for _ in range(runs)]))
