"""Counter of MDP solves: soft or hard-max values under one reward, by any caller.

with tally() as count:
model.fit(mdp, expert)
count.solved
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Solved = TypeVar("Solved")


class Tally:
    """A count of solved MDPs."""

    solved = 0


_open: ContextVar[Tally | None] = ContextVar("tally", default=None)


@contextmanager
def tally() -> Iterator[Tally]:
    """Count the MDPs solved in this context; solves in a nested context count only there."""
    count = Tally()
    before = _open.set(count)
    try:
        yield count
    finally:
        _open.reset(before)


def counted(solve: Callable[Given, Solved]) -> Callable[Given, Solved]:
    """Decorate the solving method of a model so that its calls are counted."""

    @functools.wraps(solve)
    def solved(*arguments: Given.args, **options: Given.kwargs) -> Solved:
        count = _open.get()
        if count is not None:
            count.solved += 1
        return solve(*arguments, **options)

    return solved
