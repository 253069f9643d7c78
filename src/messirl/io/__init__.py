"""Readers and writers: problem folders, plain tables, and what other packages hold."""

from messirl._lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__, __file__)
