"""Sinks of publications: one folder each, found by its name (``headgate.registry``).

``contract.py`` says what a folder has to bring. ``tests/toys`` has small examples: ``jsonl.py`` is
a log, ``book.py`` a mirror.
"""
