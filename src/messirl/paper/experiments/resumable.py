"""Tasks over processes or a cluster, their rows into a store, resumed where it stopped."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from messirl import parallel
from messirl.paper.experiments.result_store import Store
from messirl.parallel import processes, uninterrupted

Rows = list[dict[str, Any]]


class Keyed(Protocol):
    """A piece of work whose rows a store keeps."""

    @property
    def key(self) -> str:
        """The name under which it keeps them."""
        ...


T = TypeVar("T", bound=Keyed)


def resume(
    store: Store,
    todo: Sequence[T],
    together: Callable[[Sequence[T]], list[list[T]]],
    work: Callable[[Sequence[T]], list[Rows]],
    jobs: int,
    progress: Callable[[int, int], object],
    executor: Any = None,
) -> None:
    """Do the tasks that the store does not have yet, `jobs` groups at a time; `progress(done, all)` after each.

    together : function from tasks to groups of them that are done together
    work : function from a group to the rows of each of its tasks, which depend on the task alone
    executor : does them instead of processes here (see execution.completed); the store may be out of its reach, so
        that the rows come back and are written here
    """
    left = together([task for task in todo if not store.has(task.key)])
    there = len(todo) - sum(map(len, left))
    progress(there, len(todo))
    if not left:
        return

    def told(tasks: Sequence[T]) -> None:
        nonlocal there
        for _ in tasks:
            there += 1
            progress(there, len(todo))

    if executor is not None:
        for group, every in parallel.completed(work, left, executor):
            for task, rows in zip(group, every, strict=True):
                store.put(task.key, rows)
            told(group)
        return
    with processes(jobs) as pool:
        for done in parallel.run(functools.partial(_kept, store, work), left, pool):  # the workers have written
            told(done)


def _kept(store: Store, work: Callable[[Sequence[T]], list[Rows]], tasks: Sequence[T]) -> Sequence[T]:
    """Do a group of tasks, and write the rows of each."""
    for task, rows in zip(tasks, work(tasks), strict=True):
        with uninterrupted():
            store.put(task.key, rows)
    return tasks
