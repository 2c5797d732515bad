"""The tables of a pipeline and their dependencies."""
