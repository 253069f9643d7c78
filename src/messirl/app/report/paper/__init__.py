"""The page and the figures of the reproduction."""
