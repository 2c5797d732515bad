"""Verbs that start, stop, pause and upgrade a pipeline, and what runs its driver."""
