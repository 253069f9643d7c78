"""Workflows from a problem and plain settings to a record of all results, for a page, a terminal or a file."""
