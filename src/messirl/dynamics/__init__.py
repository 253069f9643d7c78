"""Dynamics that are not known but estimated from data (the paper's footnote on unknown p)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from messirl._lazy import lazily

if TYPE_CHECKING:
    from messirl.dynamics.estimated import EstimatedMDP, Evidence, estimate_mdp
    from messirl.dynamics.fitted import FittedMESSI
    from messirl.dynamics.refits import Spread, spread

_HOMES = {
    "EstimatedMDP": "messirl.dynamics.estimated",
    "Evidence": "messirl.dynamics.estimated",
    "FittedMESSI": "messirl.dynamics.fitted",  # its forests take a second to import
    "Spread": "messirl.dynamics.refits",
    "estimate_mdp": "messirl.dynamics.estimated",
    "spread": "messirl.dynamics.refits",
}
__all__ = ["EstimatedMDP", "Evidence", "FittedMESSI", "Spread", "estimate_mdp", "spread"]
__getattr__, __dir__ = lazily(__name__, _HOMES)
