"""Progress on standard error: a bar with the remaining time on a terminal, plain lines elsewhere.

The last line says how the work ended: done, with the number of iterations, or stopped.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any, Self

EVERY = 15.0  # seconds between plain lines


class Progress:
    """Progress display; a context manager that is called with (done, total).

    title   : name of the work
    unit    : unit of the count
    at_most : whether the work may end early, as a fit does that converges
    """

    def __init__(self, title: str, unit: str = "steps", *, at_most: bool = False, plain: bool | None = None) -> None:
        self.title, self.unit, self.at_most = title, unit, at_most
        on_terminal = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self.plain = not on_terminal if plain is None else plain
        self.began = self.said = time.monotonic()
        self.first: tuple[int, float] | None = None  # count and time at the first update
        self.done = self.total = 0
        self._bar: Any = None

    def __enter__(self) -> Self:
        if not self.plain:
            try:
                from messirl.app.cli.progress_bar import Bar
            except ModuleNotFoundError:  # rich is not installed
                self.plain = True
            else:
                self._bar = Bar(self)
                self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._bar is not None:
            self._bar.end(finished=kind is None)
        elif kind is None and self.first is not None:
            self._write(self.ending())

    def __call__(self, done: int, total: int) -> None:
        """Update the count."""
        now = time.monotonic()
        begin = self.first is None
        if begin:
            self.first = done, now
        self.done, self.total = done, total
        if self.plain and (begin or (now - self.said >= EVERY and done < total)):
            self.said = now
            left = self.left()
            times = "" if begin else f", {span(now - self.began)} elapsed"
            times += "" if left is None else f", {'at most' if self.at_most else 'about'} {span(left)} left"
            self._write(f"{done} of {total}{times}")

    def left(self) -> float | None:
        """Return the estimated remaining seconds; None if the rate is not known yet or nothing is left."""
        if self.first is None or not self.first[0] < self.done < self.total:
            return None
        done, when = self.first
        return (time.monotonic() - when) / (self.done - done) * (self.total - self.done)

    def ending(self) -> str:
        """Return the last line of finished work."""
        often = f", {self.done} of {self.total} {self.unit}" if self.done == self.total else ""
        return f"done{often or f' after {self.done} {self.unit}'}, {span(time.monotonic() - self.began)}"

    def _write(self, text: str) -> None:
        if sys.stderr is not None:
            sys.stderr.write(f"{self.title}: {text}\n")
            sys.stderr.flush()


def span(seconds: float) -> str:
    """Format a time in a suitable unit."""
    if seconds < 90:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
