"""Verbs that keep a pipeline well: savepoints, compaction, vacuum, repair, landing files."""
