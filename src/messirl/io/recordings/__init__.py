"""Recorded episodes: read from files, and discretised into states."""
