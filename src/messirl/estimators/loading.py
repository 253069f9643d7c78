"""Reading back what `save` wrote."""

from __future__ import annotations

import os

from messirl.estimators.methods import METHODS
from messirl.estimators.persistence import read
from messirl.estimators.policy import PolicyEstimator


def load(path: str | os.PathLike[str]) -> PolicyEstimator:
    """The fitted model in a file; ValueError if it is no such file or is damaged. Nothing in it is executed."""
    kinds = {method.estimator().__name__: method.estimator() for method in METHODS.values()}
    found: PolicyEstimator = read(path, kinds.__getitem__)
    return found
