"""Ctrl-C: heard at once, whatever the program is doing, and obeyed soon.

Python runs its own handler of a signal only between two of its steps, and the next may be long in coming: compiled
code, a wait. What the operating system does is not held up: it writes a byte into a pipe. A thread reads that pipe. It
says that the program is stopping, and ends it when it does not end by itself or when Ctrl-C is pressed again.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time

from messirl.cli.common import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)
PATIENCE = 2.0  # seconds to end by itself
ECHO = 0.1  # seconds in which the same key press may come twice: from the terminal, and passed on by a parent
SHOW_CURSOR = b"\x1b[?25h\n"


class Stopping:
    """While in this context Ctrl-C raises KeyboardInterrupt once, and is heard in any case; so does SIGTERM.

    number : the signal that was heard, or None
    """

    def __init__(self, *, to_the_end: bool) -> None:
        self.number: int | None = None
        self.to_the_end = to_the_end  # of the process: nothing is put back
        self._installed = self._over = False
        self._quiet = True  # nothing is raised outside of the work
        self._said = threading.Event()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread() or os.name == "nt":
            return self
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._woken = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._hook, sys.unraisablehook = sys.unraisablehook, self._unraisable
        threading.Thread(target=self._watch, daemon=True).start()
        self._installed = True
        for number in SIGNALS:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):  # as under nohup
                self._before[number] = signal.getsignal(number)
                signal.signal(number, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        self._quiet = True
        if not self._installed:
            return
        self.wait_until_said()
        if self.to_the_end:
            if signal.SIGINT in self._before:  # the work is done: Python has nothing to say about Ctrl-C
                signal.signal(signal.SIGINT, signal.SIG_DFL)
            return
        self._over = True
        sys.unraisablehook = self._hook
        signal.set_wakeup_fd(self._woken)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._write)  # the thread reads the end of it

    def begin(self) -> None:
        """The work begins: from here on Ctrl-C is raised in it."""
        self._quiet = False
        if self.number is not None:
            self._interrupt(self.number, None)

    @property
    def code(self) -> int:
        """The exit code of a program that was stopped."""
        return 128 + (self.number or signal.SIGINT)

    def leave(self) -> int:
        """The exit code. A program of its own ends here: Python would take its time, and might give another code."""
        if self.to_the_end and self.number is not None:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
            os._exit(self.code)
        return self.code

    def wait_until_said(self) -> None:
        """What follows comes after the first word of it."""
        if self.number is not None:
            self._said.wait(0.5)

    def _interrupt(self, number: int, frame: object) -> None:
        """Python's own part. A second time nothing is raised: it would only disturb the tidying up."""
        self.number = self.number or number
        if not self._quiet:
            self._quiet = True
            raise KeyboardInterrupt

    def _unraisable(self, what: Any) -> None:
        """Python's complaint of an interrupt that a callback from compiled code cannot pass on."""
        if self.number is None:
            self._hook(what)

    def _watch(self) -> None:
        first = None
        while byte := os.read(self._read, 1):
            if byte[0] not in self._before:
                continue
            now = time.monotonic()
            if first is None:
                first, self.number = now, byte[0]
                threading.Thread(target=self._end_after, args=(PATIENCE,), daemon=True).start()
                threading.Thread(target=self._say, daemon=True).start()  # standard error may be a pipe that is full
            elif now - first > ECHO:
                self._end_after(0.0)
        os.close(self._read)

    def _say(self) -> None:
        say("stopping" + (" (Ctrl-C again to stop at once)" if self.number == signal.SIGINT else ""))
        self._said.set()

    def _end_after(self, seconds: float) -> None:
        """End the process and its workers, whatever they do. Files are written beside their place: none is half."""
        time.sleep(seconds)
        if self._over:
            return
        _kill_workers()
        if sys.stderr is not None and sys.stderr.isatty():
            os.write(2, SHOW_CURSOR)  # a progress bar may have hidden it
        os._exit(self.code)


def _kill_workers() -> None:
    started = sys.modules.get("multiprocessing")
    for worker in [] if started is None else started.active_children():
        worker.kill()
