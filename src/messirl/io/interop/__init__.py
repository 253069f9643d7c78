"""Converters for other packages: environments, data sets, graphs, demonstrations; one file per optional dependency."""
