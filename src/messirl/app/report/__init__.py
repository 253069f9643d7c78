"""HTML reports and figures, drawn from records and tables. This package fits no model and computes no statistics."""
