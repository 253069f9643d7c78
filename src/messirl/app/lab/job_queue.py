"""Queue between pages and the worker: the newest request of each page wins, and every request has a deadline.

At most one request per page waits; a newer one replaces it and cancels the running one. The worker is a process: if an
answer misses the deadline, the worker is killed and a new one is started for the next request.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

WORKER = (sys.executable, "-m", "messirl.app.lab.worker")
DEADLINE = 90.0  # seconds, compilation included
WAITING = 32  # maximum number of waiting pages
LINE = 64_000_000  # maximum bytes of an answer
DROPPED = b'{"status":200,"dropped":true}'  # the answer to a request that a newer one has replaced


@dataclass(eq=False)
class Job:
    """One request and its future answer: a status and a line of JSON."""

    page: str
    message: dict[str, Any]
    answer: asyncio.Future[tuple[int, bytes]] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def end(self, status: int, line: bytes | str) -> None:
        """Set the answer, unless the request was cancelled."""
        if not self.answer.done():
            body = line if isinstance(line, bytes) else json.dumps({"status": status, "error": line}).encode()
            self.answer.set_result((status, body))


class RequestQueue:
    """Queue that passes requests of pages to the worker one after the other.

    folders : folders of the command line; deadline : maximum seconds of an answer; command : starts a worker
    """

    def __init__(self, folders: list[str], deadline: float = DEADLINE, command: Sequence[str] = WORKER) -> None:
        self.folders, self.deadline, self.command = folders, deadline, command
        self._waiting: OrderedDict[str, Job] = OrderedDict()
        self._now: Job | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._called = asyncio.Event()
        self._number = 0
        self._runner: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Start the worker in advance of the first request."""
        self._runner = asyncio.create_task(self._run())

    async def close(self) -> None:
        """End the worker."""
        if self._runner is not None:
            self._runner.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._runner
        await self._end()

    async def ask(self, page: str, message: dict[str, Any]) -> tuple[int, bytes]:
        """Return status and answer to a request of a page."""
        job = Job(page, message)
        older = self._waiting.pop(page, None)
        if older is not None:
            older.end(200, DROPPED)
        if len(self._waiting) >= WAITING:
            return 503, json.dumps({"status": 503, "error": "too many pages are waiting: try again"}).encode()
        self._waiting[page] = job
        self._called.set()
        if self._now is not None and self._now.page == page:
            self._send({"cancel": self._number})
        try:
            return await job.answer
        except asyncio.CancelledError:  # the page was closed
            if self._waiting.get(page) is job:
                del self._waiting[page]
            elif self._now is job:
                self._send({"cancel": self._number})
            raise

    async def _run(self) -> None:
        await self._start()
        while True:
            while not self._waiting:
                self._called.clear()
                await self._called.wait()
            _, self._now = self._waiting.popitem(last=False)
            try:
                await self._work(self._now)
            except Exception as error:  # the queue goes on after an error in one request
                self._now.end(500, f"internal error, {type(error).__name__}")
                await self._end()
            self._now = None

    async def _work(self, job: Job) -> None:
        process = await self._start()
        self._number += 1
        self._send({"id": self._number, **job.message})
        assert process.stdout is not None
        try:
            line = await asyncio.wait_for(process.stdout.readline(), self.deadline)
        except TimeoutError:
            await self._end()
            job.end(503, f"it took more than {self.deadline:g} seconds and was stopped: use messirl fit for this")
            return
        if not line:
            await self._end()
            job.end(500, "the worker process has died (out of memory?); a new one is started")
            return
        job.end(_status(line), line)

    async def _start(self) -> asyncio.subprocess.Process:
        if self._process is not None and self._process.returncode is None:
            return self._process
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
        self._process = await asyncio.create_subprocess_exec(
            *self.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, **one},  # threads only slow down small problems
            limit=LINE,
            start_new_session=True,  # Ctrl-C goes to the server, which then ends the worker
        )
        self._send({"folders": self.folders})
        return self._process

    def _send(self, message: dict[str, Any]) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError, RuntimeError):
                self._process.stdin.write(json.dumps(message).encode() + b"\n")

    async def _end(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        self._process = None


def _status(line: bytes) -> int:
    """Return the status in an answer from its first bytes: parsing all of it would take time."""
    _, _, rest = line[:60].partition(b'"status":')
    return int(rest.lstrip()[:3])
