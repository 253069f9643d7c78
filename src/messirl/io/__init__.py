"""Readers and writers of problem folders, plain tables, and objects of other packages."""

from messirl._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
