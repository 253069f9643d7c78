"""Pages of fits, selections and diagnoses."""
