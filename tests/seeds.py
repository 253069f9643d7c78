"""Seeds of the suite's random problems, all moved together by the environment variable MESSIRL_TEST_SEED.

0, the default, draws the problems that everyone draws; `make test SEED=7` draws others, and every claim must hold for
them too. A test whose claim is about one draw makes it in `pinned()` and says why.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

SHIFT = int(os.environ.get("MESSIRL_TEST_SEED") or 0)


def shifted(seed: int) -> int:
    """The seed in place of `seed`: itself where nothing is moved."""
    return (seed + 1_000_003 * SHIFT) % 2**32


@contextmanager
def pinned() -> Iterator[None]:
    """Problems made in here are those that everyone draws: for a claim about one of them."""
    global SHIFT
    before, SHIFT = SHIFT, 0
    try:
        yield
    finally:
        SHIFT = before


def generator(seed: int) -> np.random.Generator:
    """Where the numbers of a random problem come from."""
    return np.random.default_rng(shifted(seed))
