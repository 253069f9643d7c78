"""Recorded episodes: read from files, and cut into states."""
