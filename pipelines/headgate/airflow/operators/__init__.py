"""Operators for a stream, or for a pipeline's tables."""
