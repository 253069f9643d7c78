"""Packages whose names are imported when first used, so that nothing is loaded that is not needed."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


def lazily(package: str, names: Mapping[str, Sequence[str]]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package: `names` has the public ones by the full name of their module.

    A name that is itself a module has that module as its home.
    """
    homes = {name: home for home, some in names.items() for name in some}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = importlib.import_module(homes[name])
        return home if homes[name] == f"{package}.{name}" else getattr(home, name)

    return get, lambda: sorted(homes)
