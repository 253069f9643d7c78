"""Dynamics that are not known but estimated from data (the paper's footnote on unknown p)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from messirl._lazy import lazily

if TYPE_CHECKING:
    from messirl.dynamics.estimated import EstimatedMDP, Evidence, estimate_mdp
    from messirl.dynamics.fitted import FittedMESSI
    from messirl.dynamics.refits import Spread, spread

_NAMES = {
    "messirl.dynamics.estimated": ["EstimatedMDP", "Evidence", "estimate_mdp"],
    "messirl.dynamics.fitted": ["FittedMESSI"],  # its forests take a second to import
    "messirl.dynamics.refits": ["Spread", "spread"],
}
__all__ = ["EstimatedMDP", "Evidence", "FittedMESSI", "Spread", "estimate_mdp", "spread"]
__getattr__, __dir__ = lazily(__name__, _NAMES)
