"""Numba decorators of the compiled loops, cached on disk; Numba is imported in this file only."""

from __future__ import annotations

from typing import Any

from numba import config, get_num_threads, njit
from numba.np.ufunc import parallel

LINE = 64  # bytes of a cache line
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
    """Return the number of threads: as set by NUMBA_NUM_THREADS or numba.set_num_threads, else one per core.

    Where set_num_threads was not called, Numba's own threads are not started just to ask for the number.
    """
    known: Any = config
    return int(get_num_threads() if parallel._is_initialized else known.NUMBA_NUM_THREADS)
