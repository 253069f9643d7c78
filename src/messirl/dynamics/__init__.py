"""Dynamics that are not known but estimated from data (the paper's footnote on unknown p)."""

from messirl.dynamics.estimated import EstimatedMDP, Evidence, estimate_mdp
from messirl.dynamics.spread import Spread, spread

__all__ = ["EstimatedMDP", "Evidence", "Spread", "estimate_mdp", "spread"]
