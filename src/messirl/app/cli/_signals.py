"""Handling of Ctrl-C and SIGTERM: acknowledged at once, even in compiled code, and obeyed soon.

Python runs a signal handler only between two bytecode instructions, which compiled code or a wait may delay. The
operating system writes a byte into a wakeup pipe without delay. A thread reads the pipe, prints that the program is
stopping, and ends the process if it does not end by itself or if Ctrl-C is pressed again.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time

from messirl.app.cli._parser import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)
PATIENCE = 2.0  # seconds the program has to end by itself
ECHO = 0.1  # seconds in which one key press may arrive twice: from the terminal, and from the parent process
SHOW_CURSOR = b"\x1b[?25h\n"


class InterruptHandler:
    """Context in which Ctrl-C or SIGTERM raises KeyboardInterrupt once, and is always acknowledged.

    number : the received signal, or None
    """

    def __init__(self, *, to_the_end: bool) -> None:
        self.number: int | None = None
        self.exits = to_the_end  # the process ends with this context: the old handlers need not be restored
        self._installed = self._over = False
        self._quiet = True  # an interrupt is raised only during the work
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
        self.wait_for_message()
        if self.exits:
            if signal.SIGINT in self._before:  # the work is done: Ctrl-C must not raise an error any more
                signal.signal(signal.SIGINT, signal.SIG_DFL)
            return
        self._over = True
        sys.unraisablehook = self._hook
        signal.set_wakeup_fd(self._woken)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._write)  # then the thread reads the end of the pipe, and ends

    def begin(self) -> None:
        """Raise Ctrl-C as KeyboardInterrupt from here on."""
        self._quiet = False
        if self.number is not None:
            self._interrupt(self.number, None)

    @property
    def code(self) -> int:
        """Exit code of a stopped program."""
        return 128 + (self.number or signal.SIGINT)

    def leave(self) -> int:
        """Return the exit code, or exit with it if `to_the_end`: Python would take longer and might change the code."""
        if self.exits and self.number is not None:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
            os._exit(self.code)
        return self.code

    def wait_for_message(self) -> None:
        """Wait until the message that the program is stopping has been printed."""
        if self.number is not None:
            self._said.wait(0.5)

    def _interrupt(self, number: int, frame: object) -> None:
        """Handle a signal in Python: raise only once, since a second time would disturb the clean-up."""
        self.number = self.number or number
        if not self._quiet:
            self._quiet = True
            raise KeyboardInterrupt

    def _unraisable(self, what: Any) -> None:
        """Silence the message about an interrupt that a callback from compiled code cannot raise."""
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
                threading.Thread(target=self._say, daemon=True).start()  # it may block, on a full pipe
            elif now - first > ECHO:
                self._end_after(0.0)
        os.close(self._read)

    def _say(self) -> None:
        say("stopping" + (" (Ctrl-C again to stop at once)" if self.number == signal.SIGINT else ""))
        self._said.set()

    def _end_after(self, seconds: float) -> None:
        """End the process and its workers. Files are renamed into place when complete, so none is partial."""
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
