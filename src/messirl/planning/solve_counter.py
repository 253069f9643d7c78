"""How many times an MDP was solved: soft or best values under one reward, whoever asked for them.

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
    """A context that counts the MDPs solved in it; one inside another counts for itself alone."""
    count = Tally()
    before = _open.set(count)
    try:
        yield count
    finally:
        _open.reset(before)


def counted(solve: Callable[Given, Solved]) -> Callable[Given, Solved]:
    """The method of a model that solves it, counted."""

    @functools.wraps(solve)
    def solved(*arguments: Given.args, **options: Given.kwargs) -> Solved:
        count = _open.get()
        if count is not None:
            count.solved += 1
        return solve(*arguments, **options)

    return solved
