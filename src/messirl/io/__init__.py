"""Readers and writers: problem folders, plain tables, and what other packages hold.

Names are imported when first used, so that nothing is loaded that is not needed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from messirl.io.build import problem_from_tables, read_trajectories
    from messirl.io.errors import InputError
    from messirl.io.filters import select
    from messirl.io.folder import check_problem, read_problem
    from messirl.io.problem import Problem
    from messirl.io.writer import write_problem

_HOME = {
    "InputError": "errors",
    "Problem": "problem",
    "check_problem": "folder",
    "problem_from_tables": "build",
    "read_problem": "folder",
    "read_trajectories": "build",
    "select": "filters",
    "write_problem": "writer",
}

__all__ = [
    "InputError",
    "Problem",
    "check_problem",
    "problem_from_tables",
    "read_problem",
    "read_trajectories",
    "select",
    "write_problem",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"messirl.io.{_HOME[name]}"), name)
    raise AttributeError(f"module 'messirl.io' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
