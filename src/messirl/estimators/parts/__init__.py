"""Building blocks of the estimators: base classes, input checks, searches, solvers and file format."""
