"""The reproduction of the paper and the benchmark: domains, synthetic problems and experiments."""
