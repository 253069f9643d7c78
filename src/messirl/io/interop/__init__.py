"""What other packages hold: environments, data sets, graphs, demonstrations. Each optional dependency in one file."""
