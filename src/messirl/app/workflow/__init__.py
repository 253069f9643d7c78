"""From a problem and plain settings to a record of all that was found, for a page, a terminal or a file."""
