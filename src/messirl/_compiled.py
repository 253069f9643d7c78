"""Numba decorators of the compiled loops, cached on disk; Numba is imported in this file only."""

from __future__ import annotations

from typing import Any

from numba import config, get_num_threads, njit
from numba.np.ufunc import parallel

LINE = 64  # bytes of a cache line
FLAGS = {"contract", "nsz", "arcp"}  # no reassociation: rounding by a magic number must survive

jit: Any = njit(cache=True, fastmath=FLAGS, error_model="numpy", nogil=True)
inlined: Any = njit(inline="always", fastmath=FLAGS, error_model="numpy")


def threads() -> int:
    """Return the number of threads: as set by NUMBA_NUM_THREADS or numba.set_num_threads, else one per core.

    Where set_num_threads was not called, Numba's own threads are not started just to ask for the number.
    """
    known: Any = config
    return int(get_num_threads() if parallel._is_initialized else known.NUMBA_NUM_THREADS)
