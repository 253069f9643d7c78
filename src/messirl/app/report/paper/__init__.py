"""Page and figures of the reproduction of the paper."""
