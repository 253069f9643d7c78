"""Number of BLAS threads: one for small matrices.

Threads that share a small matrix mostly wait for each other. While other programs run, that takes ten to fifty times as
long as the product itself.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

SMALL = 1e8  # multiplications, which take one thread a twentieth of a second


def few_threads(work: float) -> AbstractContextManager[Any]:
    """Limit linear algebra in this context to one thread if `work`, the number of multiplications, is small.

    The limit holds for the whole process, so only the main thread sets it: others could not know when to lift it.
    """
    if work > SMALL or threading.current_thread() is not threading.main_thread():
        return nullcontext()
    limit: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limit


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
