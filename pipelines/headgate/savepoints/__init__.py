"""Savepoints: record a version of every table, and restore it."""
