"""Estimation of unknown dynamics from data (the paper's footnote on unknown p)."""

from messirl._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
