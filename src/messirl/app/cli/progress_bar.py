"""Progress bar for terminals: one line with labelled times."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import Progress as Lines, ProgressColumn, Task
from rich.text import Text

from messirl.app.cli._stdio import encodes_all_characters

if TYPE_CHECKING:
    from messirl.app.cli.progress import Progress

WIDEST, NARROWEST = 40, 6  # characters of the bar


class Bar(ProgressColumn):
    """Progress bar that is redrawn ten times per second, so that its clock runs between two updates."""

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self.progress = progress
        self.ended: bool | None = None  # True: finished; False: stopped
        self.console = Console(stderr=True, highlight=False)
        self._lines = Lines(self, console=self.console, redirect_stdout=False)

    def start(self) -> None:
        """Show the line."""
        self._lines.start()
        self._lines.add_task(self.progress.title, total=None)

    def end(self, *, finished: bool) -> None:
        """Show the final line, full if the work was finished."""
        self.ended = finished
        self._lines.refresh()
        self._lines.stop()

    def render(self, task: Task) -> Text:
        """Return title, bar and text for rich to draw; a narrow terminal gets a shorter text."""
        title, words, width = self.progress.title, self._words(), self.console.width - 1
        room = width - len(title) - 4
        text = next((some for some in words if len(some) + NARROWEST <= room), words[-1])
        size = min(room - len(text), WIDEST)
        if size < NARROWEST:
            return Text(f"{title}  {text}", no_wrap=True, overflow="ellipsis")
        full = size if self.ended else round(size * self.progress.done / max(self.progress.total, 1))
        done, rest = ("━", "━") if encodes_all_characters(self.console) else ("#", "-")
        style = "bar.finished" if self.ended else "bar.complete"
        parts: Any = (f"{title}  ", (done * full, style), (rest * (size - full), "bar.back"), f"  {text}")
        return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")

    def _words(self) -> list[str]:
        """Return versions of the text, from long to short."""
        progress = self.progress
        if self.ended:
            last = progress.ending() if progress.first is not None else "done"
            return [f"100 %  {last}", last]
        count = f"{progress.done}/{progress.total}  " if progress.first is not None else ""
        so_far = clock(time.monotonic() - progress.began)
        if self.ended is False:
            return [f"{count}stopped after {so_far}", f"{count}stopped"]
        left = progress.left()
        if left is None:
            return [f"{count}{so_far} elapsed"]
        most = "at most " if progress.at_most else ""
        return [f"{count}{so_far} elapsed, {most}{clock(left)} left", f"{count}{most}{clock(left)} left"]


def clock(seconds: float) -> str:
    """Format seconds as hours:minutes:seconds."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
