"""Resumable execution of tasks over processes or a cluster, with their rows in a store."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from messirl import parallel
from messirl.paper.experiments.result_store import Store
from messirl.parallel import processes, uninterrupted

Rows = list[dict[str, Any]]


class Keyed(Protocol):
    """A task whose rows are kept in a store."""

    @property
    def key(self) -> str:
        """Key of the rows in the store."""
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
    """Run the tasks that are not in the store, `jobs` groups at a time; call `progress(done, total)` after each.

    together : function that groups tasks which are run together
    work : function from a group to the rows of each of its tasks, which depend only on the task
    executor : runs the tasks instead of local processes (see execution.completed); its workers may not reach the
        store, so the rows are returned and written here
    """
    left = together([task for task in todo if not store.has(task.key)])
    there = len(todo) - sum(map(len, left))
    progress(there, len(todo))
    if not left:
        return

    def report(tasks: Sequence[T]) -> None:
        nonlocal there
        for _ in tasks:
            there += 1
            progress(there, len(todo))

    if executor is not None:
        for group, every in parallel.completed(work, left, executor):
            for task, rows in zip(group, every, strict=True):
                store.put(task.key, rows)
            report(group)
        return
    with processes(jobs) as pool:
        for done in parallel.run(functools.partial(_kept, store, work), left, pool):  # the workers have written
            report(done)


def _kept(store: Store, work: Callable[[Sequence[T]], list[Rows]], tasks: Sequence[T]) -> Sequence[T]:
    """Run a group of tasks and write the rows of each."""
    for task, rows in zip(tasks, work(tasks), strict=True):
        with uninterrupted():
            store.put(task.key, rows)
    return tasks
