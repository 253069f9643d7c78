"""Pages of methods side by side: messirl compare and messirl benchmark."""
