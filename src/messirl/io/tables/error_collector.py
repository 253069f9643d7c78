"""Faults of tables: the same checks stop at the first fault, or collect all of them.

A check hands every fault to `ErrorCollector`, which raises it (`read_problem`) or keeps it (`check_problem`). After a
fault
that is kept, a check returns a value that must not be used: a problem is put together only if `faults.found` is empty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from messirl._types import Flags
from messirl.data.errors import InputError
from messirl.io.tables.table import Table

LIMIT = 20  # faults of one kind that are listed one by one

T = TypeVar("T")


class ErrorCollector:
    """Faults, raised at once or collected, and notes on what was interpreted."""

    def __init__(self, *, collect: bool = False) -> None:
        self.collect = collect
        self.found: list[InputError] = []
        self.notes: list[str] = []

    def add(self, error: InputError) -> None:
        """Keep an error, or raise it at once if errors are not collected."""
        if not self.collect:
            raise error
        self.found.append(error)

    def attempt(self, function: Callable[..., T], *arguments: Any) -> T | None:
        """Call the function and return its result, or None if it raised an InputError."""
        try:
            return function(*arguments)
        except InputError as error:
            self.add(error)
            return None

    def rows(self, table: Table, wrong: Flags, say: Callable[[int], str], remedy: str) -> None:
        """Report the faulty rows: the first ones individually, then the number of the rest."""
        at = np.flatnonzero(wrong)
        for row in at[:LIMIT].tolist():
            self.add(table.error(say(row), remedy, row))
        if at.size > LIMIT:
            self.add(table.error(f"… and {at.size - LIMIT} more rows like this", remedy))
