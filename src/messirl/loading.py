"""Reading back what `save` wrote."""

from __future__ import annotations

import os
from typing import Any

from messirl.estimators.methods import METHODS
from messirl.estimators.persistence import Saved, read


def load(path: str | os.PathLike[str]) -> Any:
    """The fitted model in a file; ValueError if it is no such file or is damaged. Nothing in it is executed."""
    return read(path, _class_of)


def _class_of(name: str) -> type[Saved]:
    for method in METHODS.values():
        if method.estimator().__name__ == name:
            return method.estimator()
    from messirl.dynamics.fitted import FittedMESSI  # which needs more of scikit-learn than most files do

    return {"FittedMESSI": FittedMESSI}[name]
