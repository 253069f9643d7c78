"""Seeds of the suite's random problems, all moved together by the environment variable MESSIRL_TEST_SEED.

0, the default, draws the problems that everyone draws; `make test SEED=7` draws others, and every claim must hold for
them too. A test whose claim is about one draw uses a seed of its own and says so.
"""

from __future__ import annotations

import os

import numpy as np

SHIFT = int(os.environ.get("MESSIRL_TEST_SEED") or 0)


def shifted(seed: int) -> int:
    """The seed in place of `seed`: itself where nothing is moved."""
    return (seed + 1_000_003 * SHIFT) % 2**32


def generator(seed: int) -> np.random.Generator:
    """Where the numbers of a random problem come from."""
    return np.random.default_rng(shifted(seed))
