"""Progress reports and warnings of a workflow while it runs."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from messirl.data.feature_counts import TruncationWarning

Count = Callable[[int, int], None]  # called with (done, all)


def _nothing(*_: Any) -> None:
    """Ignore a report."""


def _uncounted(title: str, unit: str, *, at_most: bool = False) -> AbstractContextManager[Count]:
    return nullcontext(_nothing)


@dataclass(frozen=True)
class Watcher:
    """The functions that a workflow calls while it works; by default they do nothing.

    Parameters
    ----------
    say : callable
        Called with a few words on the current stage or an intermediate result.
    note : callable
        Called with a warning that does not stop the work; the record keeps the warnings that concern the result.
    progress : callable
        Called with a title and the unit that is counted, and `at_most=True` if the work may end before all are done. It
        returns a context manager that gives a function, which is called with (done, all).
    begin : callable
        Called when all arguments have been checked and the work begins.
    keep : callable
        Called with the fitted model as soon as it is fitted, so that a long fit is not lost.

    Examples
    --------
    >>> from messirl.app.workflow.watcher import Watcher
    >>> texts = Watcher(note=print).noted(["theta_max holds one weight"])
    theta_max holds one weight
    """

    say: Callable[[str], None] = _nothing
    note: Callable[[str], None] = _nothing
    progress: Callable[..., AbstractContextManager[Count]] = _uncounted
    begin: Callable[[], None] = _nothing
    keep: Callable[[Any], None] = _nothing

    def fit(self, model: Any, *data: Any, named: Callable[[str], str] = str) -> list[str]:
        """Fit the model with a count of its iterations; note and return its warnings.

        named : replaces numbers of trajectories by their names in a warning
        """
        with self.progress("fit", "iterations", at_most=True) as count, warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            if "callback" in model.get_params(deep=False):
                model.callback = lambda state: count(state["iteration"], model.max_iter)
            model.fit(*data)
        if "callback" in model.get_params(deep=False):
            model.callback = None
        return self.noted([*map(named, warning_texts(heard)), *getattr(model, "warnings_", ())])

    def noted(self, texts: list[str]) -> list[str]:
        """Note each of the texts, and return them."""
        for text in texts:
            self.note(text)
        return texts


SILENT = Watcher()


def warning_texts(heard: Iterable[warnings.WarningMessage]) -> list[str]:
    """Return the texts of the warnings, without those that differ from an earlier one only in their numbers.

    Of the warnings about trajectories that are cut off, only that of the most incomplete one is kept.
    """
    said = [warning.message for warning in heard]
    cuts = [one for one in said if isinstance(one, TruncationWarning)]
    worst = max(cuts, key=lambda one: one.weight, default=None)  # the first of equal ones, counted in its whole set
    texts = [str(one) for one in said if one is worst or not isinstance(one, TruncationWarning)]
    return list({re.sub(r"\d+(\.\d+)?", "#", text): text for text in reversed(texts)}.values())[::-1]
