"""The learning methods: MESSI, MaxEnt-IRL, EM, the baselines, and the methods of other papers."""

from messirl._lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__, __file__)
