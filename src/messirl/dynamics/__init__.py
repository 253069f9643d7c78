"""Dynamics that are not known but estimated from data (the paper's footnote on unknown p)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from messirl.dynamics.estimated import EstimatedMDP, Evidence, estimate_mdp
from messirl.dynamics.spread import Spread, spread

if TYPE_CHECKING:
    from messirl.dynamics.fitted import FittedMESSI

__all__ = ["EstimatedMDP", "Evidence", "FittedMESSI", "Spread", "estimate_mdp", "spread"]


def __getattr__(name: str) -> Any:
    """FittedMESSI when first asked for: its forests take a second to import."""
    if name == "FittedMESSI":
        from messirl.dynamics.fitted import FittedMESSI

        return FittedMESSI
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
