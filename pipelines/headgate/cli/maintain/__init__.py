"""Verbs that maintain a pipeline: savepoints, compaction, vacuum, repair, landing files."""
