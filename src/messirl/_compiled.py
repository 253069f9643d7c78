"""Loops compiled by Numba, which is imported in this file only; what is compiled is kept for later processes."""

from __future__ import annotations

from typing import Any

from numba import config, get_num_threads, njit
from numba.np.ufunc import parallel

LINE = 64  # bytes that the cache holds together
FLAGS = {"contract", "nsz", "arcp"}  # no reassociation: rounding by a magic number must survive

inlined: Any = njit(inline="always", fastmath=FLAGS, error_model="numpy")


def jit(loop: Any) -> Any:
    """Compile a loop, and keep what was compiled where a folder for it can be written.

    Numba takes `NUMBA_CACHE_DIR`, the folder of the file or one in the user's home, and raises where it can write to
    none of them. Every process then compiles anew.
    """
    how: Any = {"fastmath": FLAGS, "error_model": "numpy", "nogil": True}
    try:
        return njit(cache=True, **how)(loop)
    except RuntimeError:  # "cannot cache function …: no locator available for file …"
        return njit(**how)(loop)


def threads() -> int:
    """How many threads may be used: what NUMBA_NUM_THREADS and numba.set_num_threads allow, else one per core.

    Who has not set a number has not launched Numba's own threads, and need not.
    """
    known: Any = config
    return int(get_num_threads() if parallel._is_initialized else known.NUMBA_NUM_THREADS)
