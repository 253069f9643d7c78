"""Lazy imports: the public names of a package are imported on first use.

Public names and their modules are declared once, in the stub `__init__.pyi` beside the package's `__init__.py`, as
lines `from module import name as name`, which type checkers and editors read as well (Scientific Python's SPEC 1).
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SPARED = ("pyarrow", "matplotlib", "rich")  # packages that a light install leaves out: no fit needs them
MISSING = "{what} needs {package}, which is not installed: pip install {package}"


def lazy_exports(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package, given its `__name__` and `__file__`.

    A public name may itself be a module.
    """
    homes = _homes(file)

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            if homes[name] == package:
                return importlib.import_module(f"{package}.{name}")
            return getattr(importlib.import_module(homes[name]), name)
        except ModuleNotFoundError as error:
            if error.name not in SPARED:
                raise
            raise ImportError(MISSING.format(what=f"{package}.{name}", package=error.name)) from None

    return get, lambda: sorted(homes), sorted(homes)


def _homes(file: str) -> dict[str, str]:
    with open(f"{file.removesuffix('c')}i", encoding="utf-8") as stub:
        parts = stub.read().split("\nfrom ")[1:]
    found: dict[str, str] = {}
    for part in parts:
        home, _, names = part.partition(" import ")
        names = names[1:].partition(")")[0] if names.startswith("(") else names.partition("\n")[0]
        found |= {name.split()[-1]: home for name in names.split(",") if name.strip()}
    return found
