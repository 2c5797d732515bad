"""Sinks of publications: one folder each, found by its name (``headgate.registry``).

``contract.py`` defines what a folder must provide. ``tests/toys`` has small examples: ``jsonl.py``
is a log, ``book.py`` a mirror.
"""
