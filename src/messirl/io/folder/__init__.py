"""Problem folders: read, checked and written."""
