"""Run a command as on a processor of fifteen years ago: python tools/portable.py COMMAND …

    Numba      compiles for a generic processor of this kind (that leaves out every optional instruction set)
    OpenBLAS   uses its kernels for one of the oldest processors it knows
    NumPy      leaves out every instruction set that it has a choice about

What the command starts inherits this. Numba keeps what it compiles for it in a cache apart.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

OLD_KERNELS = {"x86_64": "Prescott", "amd64": "Prescott", "aarch64": "ARMV8", "arm64": "ARMV8"}
CACHE = Path(__file__).resolve().parent.parent / "build" / "numba-portable" / Path(sys.prefix).name


def settings() -> dict[str, str]:
    """Environment variables; read before the libraries are loaded, so they go to a new process."""
    chosen = {"NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(CACHE)}
    kernels = OLD_KERNELS.get(platform.machine().lower())
    if kernels is not None:
        chosen["OPENBLAS_CORETYPE"] = kernels
    else:
        print(f"OpenBLAS keeps its own choice: no old kernels are known for {platform.machine()}.", flush=True)
    features = optional_features()
    if features:  # a name that NumPy does not know, or that the processor lacks, would be a warning
        chosen["NPY_DISABLE_CPU_FEATURES"] = " ".join(features)
    else:
        print("NumPy has no instruction set to leave out on this processor.", flush=True)
    return chosen


def optional_features() -> list[str]:
    """The instruction sets of this processor that this NumPy would use and can leave out."""
    from numpy._core import _multiarray_umath as core

    return [name for name in core.__cpu_dispatch__ if core.__cpu_features__.get(name)]


if __name__ == "__main__":
    if not sys.argv[1:]:
        raise SystemExit(__doc__)
    for name in ("NUMBA_CPU_FEATURES", "NPY_DISABLE_CPU_FEATURES", "NPY_ENABLE_CPU_FEATURES"):
        os.environ.pop(name, None)
    chosen = settings()
    print(" ".join(f"{name}={value}" for name, value in chosen.items() if name != "NUMBA_CACHE_DIR"), flush=True)
    os.execvpe(sys.argv[1], sys.argv[1:], {**os.environ, **chosen})
