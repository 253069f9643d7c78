"""Evaluation of fits: standard errors, predictions, distances to a known truth, comparison with baselines."""

from messirl._lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__, __file__)
