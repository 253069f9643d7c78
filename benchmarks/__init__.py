"""How fast the library is, as ratios: `make bench`, and `make bench-peers` against other packages.

One thread throughout. The limits must stand before NumPy is imported, so they are set here.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")
