"""Sinks of publications: one folder each, found by its name (``headgate.registry``).

``declaration/contracts/sink.py`` defines what a folder must provide, ``writers.py`` what its writer
or mirror does. ``tests/toys`` has small examples: ``jsonl.py`` sends at least once, ``book.py`` is
transactional.
"""
