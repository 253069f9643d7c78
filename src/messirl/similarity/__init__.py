"""Similarities between trajectories, and the pairwise penalty that they define (paper, section 3, Eq. 5)."""

from messirl._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
