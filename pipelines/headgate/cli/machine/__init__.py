"""Verbs about this machine: what it lacks, and a new project on it."""
