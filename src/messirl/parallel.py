"""Execution of many tasks: in this process, in several on this machine, or by any executor.

    with processes(4) as executor:
        for result in run(work, tasks, executor, progress):
            ...

The results and their order do not depend on the executor: each result depends on its task only, and random numbers are
drawn before the tasks are submitted.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
QUIET = "ignore:resource_tracker:UserWarning"  # Python cleans up after a killed program, and need not warn
PATIENCE = 1.0  # seconds that a worker has to stop by itself

T = TypeVar("T")
R = TypeVar("R")
Progress = Callable[[int, int], object]  # called with (done, all)


def run(
    work: Callable[[T], R], tasks: Iterable[T], executor: Any = None, progress: Progress | None = None
) -> Iterator[R]:
    """Yield `work(task)` of every task, in the order of the tasks.

    executor : None for this process; else anything with `submit(function, argument)` that returns a future, such as a
        pool of concurrent.futures or a client of a cluster: all tasks are submitted at once, before this returns
    progress : called with (done, all) after each task
    """
    every = list(tasks)
    if executor is None:
        return _told((work(task) for task in every), len(every), progress)
    futures = [executor.submit(work, task) for task in every]
    return _told(_results(futures), len(every), progress)


def _told(results: Iterable[R], total: int, progress: Progress | None) -> Iterator[R]:
    for done, result in enumerate(results, start=1):
        if progress is not None:
            progress(done, total)
        yield result


def _results(futures: Sequence[Any]) -> Iterator[Any]:
    try:
        for future in futures:
            yield future.result()
    except Exception:  # after a failure, pending tasks are cancelled; for interrupts see `processes`
        for future in futures:
            future.cancel()
        raise


def run_ahead(work: Callable[[T], R], tasks: Iterable[T], executor: Any, most: int) -> Iterator[R]:
    """Yield `work(task)` of every task, in the order of the tasks, with few results in memory at once.

    executor : as for `run`, but not None
    most : tasks that are submitted before the result of the first of them is taken
    """
    waiting: deque[Any] = deque()
    try:
        for task in tasks:
            if len(waiting) == most:
                yield waiting.popleft().result()
            waiting.append(executor.submit(work, task))
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def completed(
    work: Callable[[T], R], tasks: Iterable[T], executor: Any, progress: Progress | None = None
) -> Iterator[tuple[T, R]]:
    """Yield every task with `work(task)` as soon as it is done, in any order.

    executor : as for `run`, but not None, and with futures of concurrent.futures
    """
    every = list(tasks)
    futures = {executor.submit(work, task): task for task in every}
    return _told(_pairs(futures), len(every), progress)


def _pairs(futures: dict[Any, T]) -> Iterator[tuple[T, Any]]:
    failed = None
    for future in as_completed(futures):
        try:
            result = future.result()
        except Exception as error:  # pending tasks are cancelled, but finished ones are still yielded
            failed = failed or error
            for other in futures:
                other.cancel()
        else:
            yield futures[future], result
    if failed is not None:
        raise failed


@dataclass(frozen=True, eq=False)
class KeptResult:
    """A result that stays where it was computed, for use by later tasks of the same executor.

    Such an executor has `keep(function, argument, on=None)`, which returns a `KeptResult`, and `submit` takes `on`
    too: a
    `KeptResult` or a list of them, which the function then gets as its second argument.
    """


# ------------------------------------------------------------ threads


_alone: ContextVar[bool] = ContextVar("alone", default=False)


def must_use_one_thread() -> bool:
    """Return True in a task that shares the cores with others and must use one thread."""
    return _alone.get()


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Limit work in this context to one thread, because other tasks run in parallel."""
    before = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(before)


# ------------------------------------------------------------ processes of this machine


@contextlib.contextmanager
def processes(jobs: int) -> Iterator[ProcessPoolExecutor | None]:
    """Provide an executor of `jobs` processes with one thread each; None for one job, which runs in this process.

    Ctrl-C ends the workers at once, except inside `uninterrupted`.
    """
    if jobs == 1:
        yield None
        return
    told = dict.fromkeys(THREADS, "1")  # the processes already use all cores
    told["PYTHONWARNINGS"] = ",".join([*filter(None, [os.environ.get("PYTHONWARNINGS")]), QUIET])
    before = {name: os.environ.get(name) for name in told}
    os.environ.update(told)
    others = multiprocessing.active_children()
    pool = _Pool(jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_begin_worker)
    try:
        yield pool
    except KeyboardInterrupt:  # end the workers without waiting for their tasks
        _end([worker for worker in multiprocessing.active_children() if worker not in others])
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class _Pool(ProcessPoolExecutor):
    """A pool whose workers, started by `submit`, are not interrupted by Ctrl-C during an import."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        with _interrupt_later():
            return super().submit(fn, *args, **kwargs)


class _Stop:
    """A signal handler that ends a worker at once or, if it is writing, as soon as it has finished."""

    def __init__(self) -> None:
        self.told = self.writing = False

    def __call__(self, number: int, frame: object) -> None:
        self.told = True
        self.leave()

    def leave(self) -> None:
        if self.told and not self.writing:
            os._exit(1)


_stop = _Stop()


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay the end of a worker until this context is left, such as for writing a file."""
    _stop.writing = True
    try:
        yield
    finally:
        _stop.writing = False
        _stop.leave()


def _begin_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    signal.signal(signal.SIGTERM, _stop)
    parent = multiprocessing.parent_process()

    def end_with_parent() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


@contextlib.contextmanager
def _interrupt_later() -> Iterator[None]:
    """Hold back Ctrl-C while workers start: they inherit the blocked signal, and imports are not interrupted."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


def _end(workers: list[Any]) -> None:
    """Terminate the workers, and kill those that do not stop."""
    for worker in workers:
        worker.terminate()
    until = time.monotonic() + PATIENCE
    for worker in workers:
        worker.join(max(until - time.monotonic(), 0.0))
        worker.kill()
