"""Savepoints: a reading of every table's version, and going back to one."""
