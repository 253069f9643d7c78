"""Estimation of unknown dynamics from data (the paper's footnote on unknown p)."""

from messirl._lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__, __file__)
