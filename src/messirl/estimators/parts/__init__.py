"""What methods are made of: base classes, readers, searches, solvers and files; no method is here."""
