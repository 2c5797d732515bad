"""Verbs that start, stop, pause and upgrade a pipeline, and the code that runs its driver."""
