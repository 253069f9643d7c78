"""Compiled loops: over blocks of states, many problems, many goals, graphs and linear systems."""
