"""Progress on standard error: a bar with the time left on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

EVERY = 15.0  # seconds between plain lines


class Progress:
    """Called with (done, all); used as a context."""

    def __init__(self, title: str, *, plain: bool | None = None) -> None:
        self.title = title
        self.plain = not sys.stderr.isatty() if plain is None else plain
        self.began = self.said = time.monotonic()
        self.first: int | None = None
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if not self.plain:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._bar.start()
            self._task = self._bar.add_task(self.title, total=None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total)
            return
        now = time.monotonic()
        begin = self.first is None
        if self.first is None:
            self.first, self.began = done, now
        if begin or done == total or now - self.said >= EVERY:
            self.said = now
            rate = (now - self.began) / max(done - self.first, 1)
            left = f", about {_span(rate * (total - done))} left" if done > self.first and done < total else ""
            sys.stderr.write(f"{self.title}: {done} of {total}{left}\n")
            sys.stderr.flush()


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
