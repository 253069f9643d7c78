"""Pages of fits, selections, diagnoses and evaluations."""
