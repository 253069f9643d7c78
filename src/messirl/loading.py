"""Loading of saved models."""

from __future__ import annotations

import os
from typing import Any

from messirl import dynamics, estimators
from messirl.estimators.persistence import SavableEstimator, read
from messirl.estimators.registry import METHODS


def load(path: str | os.PathLike[str]) -> Any:
    """Load a saved model; raise a ValueError if the file is not a model or is damaged. Nothing in it is executed."""
    return read(path, _class_of)


def _class_of(name: str) -> type[SavableEstimator]:
    homes = {method.kind: estimators for method in METHODS.values()} | {"FittedMESSI": dynamics}
    kind: type[SavableEstimator] = getattr(homes[name], name)
    return kind
