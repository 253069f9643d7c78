"""Pages of method comparisons: `messirl compare` and `messirl benchmark`."""
