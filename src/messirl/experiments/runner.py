"""Running the reproduction: tasks over processes, parts into the store, going on where it was stopped."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from messirl.domains import DOMAINS, Domain
from messirl.experiments.settings import Setting
from messirl.experiments.store import Origin, Store
from messirl.experiments.trials import run_trials, trials

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
QUIET = "ignore:resource_tracker:UserWarning"  # it tidies up after a program ended by force, and need not say so
PATIENCE = 1.0  # seconds that a worker has to stop


@dataclass(frozen=True)
class Task:
    """All trainings of one figure in one run of one setting."""

    name: str  # of the setting: the domain's, or a variant's
    setting: Setting
    figure: str
    run: int
    seed: int

    @property
    def key(self) -> str:
        return f"{self.name}-{self.figure}-{self.run:03d}".replace(": ", "-").replace(" ", "_")


def configuration(settings: dict[str, Setting]) -> str:
    """A hash over all settings: what a store may not be mixed over."""
    return hashlib.sha256("".join(f"{k}:{s.config_hash};" for k, s in settings.items()).encode()).hexdigest()[:12]


@functools.lru_cache(maxsize=64)
def _domain(name: str, arguments: tuple[tuple[str, Any], ...]) -> Domain:
    return DOMAINS[name](**dict(arguments))


def do(task: Task) -> list[dict[str, Any]]:
    """The rows of one task; depends on the task alone."""
    domain = _domain(task.setting.domain, tuple(sorted(task.setting.arguments.items())))
    scene = domain.scene(task.seed)
    place = {
        "domain": task.name,
        "figure": task.figure,
        "run": task.run,
        "seed": task.seed,
        "config_hash": task.setting.config_hash,
    }
    return [{**place, **row} for row in run_trials(trials(task.figure, task.setting), task.setting, scene)]


class _Stop:
    """A worker told to stop does so at once, but what it is writing it writes to the end."""

    def __init__(self) -> None:
        self.told = self.writing = False

    def __call__(self, number: int, frame: object) -> None:
        self.told = True
        self.leave()

    def leave(self) -> None:
        if self.told and not self.writing:
            os._exit(1)


_stop = _Stop()


def _work(task: Task, folder: Path, origin: Origin) -> str:
    rows = do(task)
    _stop.writing = True
    try:
        Store(folder, origin).put(task.key, rows)
    finally:
        _stop.writing = False
        _stop.leave()
    return task.key


def _begin_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's affair
    signal.signal(signal.SIGTERM, _stop)
    parent = multiprocessing.parent_process()

    def end_with_parent() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


@contextlib.contextmanager
def _interrupt_later() -> Iterator[None]:
    """Hold back Ctrl-C while workers are started: they inherit that, and are not cut off in the middle of an import."""
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
    """Tell the workers to stop, and end those that do not."""
    for worker in workers:
        worker.terminate()
    until = time.monotonic() + PATIENCE
    for worker in workers:
        worker.join(max(until - time.monotonic(), 0.0))
        worker.kill()


def run(store: Store, todo: list[Task], jobs: int, progress: Callable[[int, int], None]) -> None:
    """Do the tasks that the store does not have yet, `jobs` at a time; `progress(done, all)` after each."""
    left = [task for task in todo if not store.has(task.key)]
    done = len(todo) - len(left)
    progress(done, len(todo))
    if not left:
        return
    if jobs == 1:
        for task in left:
            _work(task, store.folder, store.origin)
            done += 1
            progress(done, len(todo))
        return
    told = dict.fromkeys(THREADS, "1")  # the workers are the parallelism
    told["PYTHONWARNINGS"] = ",".join([*filter(None, [os.environ.get("PYTHONWARNINGS")]), QUIET])
    before = {name: os.environ.get(name) for name in told}
    os.environ.update(told)
    context = multiprocessing.get_context("spawn")
    others = multiprocessing.active_children()
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin_worker)
    try:
        waiting = iter(left)
        running: set[Future[str]] = set()
        with _interrupt_later():
            for task in itertools.islice(waiting, 2 * jobs):
                running.add(pool.submit(_work, task, store.folder, store.origin))
        while running:
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                future.result()
                done += 1
                progress(done, len(todo))
                following = next(waiting, None)
                if following is not None:
                    running.add(pool.submit(_work, following, store.folder, store.origin))
    except KeyboardInterrupt:  # nobody waits for work of half a minute; what is finished is in the store
        _end([worker for worker in multiprocessing.active_children() if worker not in others])
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
