"""Package versions."""

from __future__ import annotations

import platform
from importlib import metadata

PACKAGES = ("messirl", "numpy", "scipy", "numba", "scikit-learn", "pyarrow", "matplotlib")


def versions() -> str:
    """Return the versions of Python and of the packages that numbers and figures depend on."""
    return ", ".join([f"Python {platform.python_version()}", *map(_version, PACKAGES)])


def _version(package: str) -> str:
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return f"{package} (version unknown)"
