"""The learning methods: MESSI, MaxEnt-IRL, EM, the baselines, and the methods of other papers."""

from messirl._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
