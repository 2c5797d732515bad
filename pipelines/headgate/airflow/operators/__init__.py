"""Tasks about a stream, or about a pipeline's tables."""
