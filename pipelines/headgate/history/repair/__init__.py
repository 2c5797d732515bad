"""Finds what is damaged in a pipeline, and repairs it from what is intact."""
