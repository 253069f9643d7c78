"""An executor for `execution.run` that sends tasks to a running Dask cluster.

    with cluster.connect("tcp://10.0.0.1:8786") as executor:
        MESSICV().fit(mdp, expert, unlabelled, executor=executor)

The data that all tasks share (the MDP, the trajectories) is pickled once, sent to the scheduler once and from there to
each worker. The scheduler keeps it pickled, so that it needs no messirl, and a worker that dies loses nothing: another
one runs its tasks again. Results depend on the task only, so they are the same.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import queue
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import messirl
from messirl.parallel import KeptResult, one_thread

TIMEOUT = 10.0  # seconds in which a scheduler must answer, and have a worker
PATIENCE = 60.0  # seconds that work waits for a new worker when none is left
EVERY = 1.0  # seconds between two checks of the cluster
SOON = 0.02  # seconds until the scheduler is asked again whether it knows a task to be cancelled
SIGNS = 12  # characters of a fingerprint
VERSION = "__import__('messirl').__version__"  # evaluated where messirl may be missing
DO = "__import__('messirl.cluster').cluster.run_task(work, task, home, on)"  # spelt out: a scheduler has no messirl
LOGGERS = ("distributed", "distributed.client")


class ClusterError(RuntimeError):
    """Error for a cluster that cannot be used, or no longer; the message says why and what to do."""


def connect(address: str, timeout: float = TIMEOUT) -> Cluster:
    """Connect to the Dask cluster whose scheduler has this address, and return an executor.

    Raises `ClusterError` if the scheduler does not answer within `timeout` seconds, if there are no workers, or if a
    worker has a different version of messirl, whose results may differ.
    """
    try:
        import distributed
    except ImportError:
        raise ImportError("this needs distributed: pip install 'messirl[cluster]'") from None
    said = {name: logging.getLogger(name).level for name in LOGGERS}
    for name in said:  # errors are raised, and need not be logged as well
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    client: Any = object.__new__(distributed.Client)
    begin = functools.partial(distributed.Client.__init__, client, address, timeout=timeout, set_as_default=False)
    try:
        _within(timeout + 5.0, begin)
    except Exception as error:
        client.status = "closed"  # otherwise it would try to disconnect when it is garbage-collected
        _log_again(said)
        if isinstance(error, ValueError | TypeError):
            words = f"{address!r} is not the address of a scheduler: give one such as tcp://10.0.0.1:8786"
        else:
            words = f"no scheduler answers at {address} within {timeout:g} s: start it, and make it reachable from here"
        raise ClusterError(words) from error
    cluster = Cluster(client, address, said)
    try:
        cluster.begin(timeout)
    except BaseException:
        cluster.close()
        raise
    return cluster


def _within(seconds: float, call: Callable[[], object]) -> None:
    """Call it in another thread, with a timeout: Dask waits forever for a server that listens but never answers."""
    done: Future[None] = Future()

    def work() -> None:
        try:
            call()
            done.set_result(None)
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    done.result(seconds)


def _log_again(levels: dict[str, int]) -> None:
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


class Cluster:
    """An executor over the workers of a Dask cluster, made by `connect`; closing it leaves the cluster running.

    Parameters
    ----------
    client : distributed.Client
        The connection.
    address : str
        The address of the scheduler, for messages.
    said : dict
        The previous levels of Dask's loggers, which closing restores.

    Examples
    --------
    >>> from messirl.cluster import connect
    >>> with connect("tcp://10.0.0.1:8786") as executor:  # doctest: +SKIP
    ...     found = bootstrap(model, mdp, expert, unlabelled, executor=executor)
    """

    def __init__(self, client: Any, address: str, said: dict[str, int]) -> None:
        self.client, self.address, self.said = client, address, said
        self._waiting: dict[Future[Any], Any] = {}  # pending futures, each with Dask's futures of task and function
        self._cancelled: queue.SimpleQueue[Any] = queue.SimpleQueue()  # Dask's futures that are no longer needed
        self._packed: tuple[Any, Any] | None = None  # the last function sent, and its future on the cluster
        self._lock, self._over = threading.Lock(), threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self, timeout: float = TIMEOUT) -> None:
        """Wait for a worker, refuse those with a different messirl, and start to watch the cluster."""
        try:
            self.client.wait_for_workers(1, timeout=timeout)
        except TimeoutError as error:
            raise ClusterError(
                f"the scheduler at {self.address} has no workers: start one with 'dask worker {self.address} "
                "--nthreads 1'"
            ) from error
        self._refuse_others()
        many = [worker for worker, threads in self.client.nthreads().items() if threads > 1]
        if many:
            warnings.warn(
                f"the worker {many[0]} has several threads, of which only one works at a time: start workers with "
                "--nthreads 1, one per core",
                stacklevel=2,
            )
        for work in (self._watch, self._take_back):
            threading.Thread(target=work, daemon=True).start()

    def submit(self, function: Any, argument: Any, /, on: Any = None) -> Future[Any]:
        """Run `function(argument)` on a worker; a function is sent once for consecutive calls.

        on : a result of `keep`, or a list of them; a worker that has it runs `function(argument, on)`

        A task that is cancelled before a worker has begun is not run; one that has begun is finished, and dropped.
        """
        answer: Future[Any] = Future()
        sent = self._sent(function, argument, on)
        with self._lock:
            self._waiting[answer] = sent
        answer.add_done_callback(self._forget)
        sent[0].add_done_callback(functools.partial(self._arrived, answer))
        return answer

    def keep(self, function: Any, argument: Any, /, on: Any = None) -> KeptResult:
        """Run like `submit`, but keep the result on the cluster; it is computed again if its worker is lost."""
        return RemoteResult(*self._sent(function, argument, on))

    def _sent(self, function: Any, argument: Any, on: Any) -> tuple[Any, Any]:
        """Return Dask's futures of a task and of its function; both must be held until the task is done."""
        from distributed.protocol.pickle import dumps

        if self._over.is_set():
            raise ClusterError(f"the connection to {self.address} is closed: connect again")
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "(?s).*Sending large graph", UserWarning)  # it is sent once
                if self._packed is None or self._packed[0] is not function:
                    self._packed = function, self.client.submit(bytes, dumps(function), pure=False)
                names = {"work": self._packed[1], "task": dumps(argument), "home": fingerprint(), "on": _there(on)}
                return self.client.submit(eval, DO, names, pure=False), self._packed[1]
        except (OSError, RuntimeError) as error:  # raised by Dask when the scheduler is gone
            raise self._lost() from error

    def close(self) -> None:
        """Drop unfinished tasks, and leave the cluster running."""
        self._over.set()
        self._cancelled.put(None)
        self._fail(ClusterError(f"the connection to {self.address} was closed"))
        self._packed = None
        self.client.close(timeout=2)
        _log_again(self.said)

    # -------------------------------------------------------- results of tasks

    def _forget(self, answer: Future[Any]) -> None:
        with self._lock:
            there = self._waiting.pop(answer, None)
        if answer.cancelled():
            answer.set_running_or_notify_cancel()  # notifies waiters for the first completed future
            if there is not None:
                self._cancelled.put(there)

    def _arrived(self, answer: Future[Any], there: Any) -> None:
        """Hand on a result or an error (called in one of Dask's threads)."""
        if answer.done():
            return
        try:
            result, error = there.result(), None
        except BaseException as caught:  # a task that was cancelled raises no Exception
            result, error = None, self._explained(caught, there.status)
        _give(answer, result, error)

    def _explained(self, error: BaseException, status: str) -> BaseException:
        """Return the error to raise for a failed task: its own, or a `ClusterError`."""
        if status in ("cancelled", "lost"):
            return self._caused(self._lost(), error)
        if type(error).__name__ == "KilledWorker":
            words = f"one task killed several workers at {self.address} (out of memory?): give each worker more memory"
            return self._caused(ClusterError(words), error)
        if isinstance(error, ImportError | AttributeError):  # perhaps a new worker has a different messirl
            try:
                self._refuse_others()
            except ClusterError as other:
                return self._caused(other, error)
        return error

    @staticmethod
    def _caused(error: ClusterError, by: BaseException) -> ClusterError:
        error.__cause__ = by
        return error

    def _lost(self) -> ClusterError:
        return ClusterError(f"the scheduler at {self.address} no longer answers: start it and its workers again")

    def _fail(self, error: ClusterError) -> None:
        with self._lock:
            waiting = list(self._waiting)
        for answer in waiting:
            _give(answer, None, error)

    # -------------------------------------------------------- the cluster

    def _refuse_others(self) -> None:
        """Raise an error that names a worker with a different messirl, if there is one."""
        versions = self.client.run(eval, VERSION, on_error="return")
        for worker, found in versions.items():
            if isinstance(found, BaseException):
                raise ClusterError(f"the worker {worker} has no messirl: install {messirl.__version__} there")
            if found != messirl.__version__:
                raise ClusterError(
                    f"the worker {worker} has messirl {found}, but this is {messirl.__version__}: install the same "
                    "version there"
                )
        for worker, found in self.client.run(fingerprint, on_error="return").items():
            if found != fingerprint():
                raise ClusterError(
                    f"the worker {worker} has messirl {messirl.__version__} with different files: install the same "
                    "files there"
                )

    def _take_back(self) -> None:
        """Cancel tasks that are no longer needed, until closed, each as soon as the scheduler knows it.

        The scheduler learns of a task with a delay, and ignores cancellations of unknown tasks.
        """
        left: list[Any] = []
        while not self._over.is_set():
            try:
                left.append(self._cancelled.get(timeout=SOON if left else None))
            except queue.Empty:
                left = self._cancel_known(left)

    def _cancel_known(self, some: list[Any]) -> list[Any]:
        """Cancel the tasks that the scheduler knows, and return the others."""
        keys = [there.key for there, _ in some]
        try:
            ask = self.client.scheduler.get_task_status
            states = self.client.sync(ask, keys=keys, callback_timeout=TIMEOUT)
            self.client.cancel([there for there, _ in some if states[there.key] is not None])
        except Exception:  # no answer, which `_watch` notices
            return []
        return [one for one, key in zip(some, keys, strict=True) if states[key] is None]

    def _watch(self) -> None:
        """Watch the cluster until closed, and fail pending tasks if the scheduler or all workers are gone."""
        seen = time.monotonic()
        while not self._over.wait(EVERY):
            try:
                workers = self.client.nthreads() if self.client.status == "running" else None
            except Exception:  # any error that Dask raises without an answer
                workers = None
            if self._over.is_set():
                return
            if workers is None:
                self._fail(self._lost())
            elif workers:
                seen = time.monotonic()
            elif time.monotonic() - seen > PATIENCE:
                self._fail(ClusterError(f"no worker is left at {self.address}: start one or more"))


@dataclass(frozen=True, eq=False)
class RemoteResult(KeptResult):
    """Dask's futures of a task whose result stays on the cluster, and of its function."""

    there: Any
    function: Any


def _there(on: Any) -> Any:
    """Return Dask's futures of kept results."""
    return [one.there for one in on] if isinstance(on, list) else getattr(on, "there", None)


def _give(answer: Future[Any], result: Any, error: BaseException | None) -> None:
    """Resolve a future, unless it is done."""
    with _settling:
        if answer.done() or not answer.set_running_or_notify_cancel():
            return
        if error is None:
            answer.set_result(result)
        else:
            answer.set_exception(error)


_settling = threading.Lock()


# ------------------------------------------------------------ on a worker


def run_task(work: bytes, task: bytes, home: str, on: Any = None) -> Any:
    """Apply a pickled function to a pickled task, if this messirl has the fingerprint `home`.

    on : results of other tasks that are the function's second argument, if any

    Both arrive pickled, so that a worker without messirl fails here and not in Dask's transfer, which Dask would retry
    again and again.
    """
    if fingerprint() != home:
        raise ClusterError("a worker has a different messirl than the sender of the task: install the same there")
    with _one_at_a_time, one_thread():
        given = (_loaded(task),) if on is None else (_loaded(task), on)
        return _unpacked(work)(*given)


@functools.lru_cache(maxsize=1)
def _unpacked(work: bytes) -> Any:
    return _loaded(work)


def _loaded(packed: bytes) -> Any:
    from distributed.protocol.pickle import loads

    return loads(packed)


_one_at_a_time = threading.Lock()  # warnings and random state belong to a process, and threads would share them


@functools.cache
def fingerprint() -> str:
    """Return a hash of the package's source files, since equal versions may still have different files."""
    home, found = Path(__file__).parent, hashlib.sha256()
    for place in sorted(home.rglob("*.py")):
        found.update(place.relative_to(home).as_posix().encode() + b"\0" + place.read_bytes() + b"\0")
    return found.hexdigest()[:SIGNS]
