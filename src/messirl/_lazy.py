"""Packages whose names are imported when first used, so that nothing is loaded that is not needed."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def lazily(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package: `homes` has the full name of the module that each public name is in.

    A name that is itself a module has that module as its home.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = importlib.import_module(homes[name])
        return home if homes[name] == f"{package}.{name}" else getattr(home, name)

    return get, lambda: sorted(homes)
