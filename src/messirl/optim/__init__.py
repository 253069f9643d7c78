"""Optimisers over a box, for functions that may be −∞ outside a convex set."""
