"""Experiments of the paper (section 4 and App. B): settings, a runner with a store, and tests of its claims."""
