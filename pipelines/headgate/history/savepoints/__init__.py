"""Savepoints: record a version of every table, and restore it.

``restore.py`` restores, and then compares every table with the savepoint. ``verify.py`` checks
beforehand whether a savepoint can be restored.
"""
