"""Optimisers over a box, of functions that may be −∞ outside a convex set."""
