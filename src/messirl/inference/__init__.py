"""Evaluation of fits: standard errors, predictions, distances to a known truth, comparison with baselines."""

from messirl._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
