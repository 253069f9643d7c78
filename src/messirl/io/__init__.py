"""Readers and writers of problem folders, plain tables, and objects of other packages."""

from messirl._lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__, __file__)
