"""How many threads linear algebra takes: one where matrices are small.

Threads that share a small matrix mostly wait for each other, and where other programs are at work they wait long: ten
to fifty times what the product itself takes.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

SMALL = 1e8  # multiplications that take one thread a twentieth of a second


def few_threads(work: float) -> AbstractContextManager[Any]:
    """One thread for the linear algebra in here if `work`, its multiplications, are few; else as many as there are.

    The limit is one of the whole process, so that the main thread alone sets it: others could not know when to lift it.
    """
    if work > SMALL or threading.current_thread() is not threading.main_thread():
        return nullcontext()
    limit: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limit


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
