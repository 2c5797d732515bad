"""Verbs that start, stop, pause and upgrade a pipeline and show its log, and the code that runs its
driver."""
