"""Sources of events. A source is a log: it has offsets, and a range can be read again.

Each kind of source has a folder, which is found by its name (``headgate.registry``).
``contract.py`` defines what a kind has to implement. ``tests/toys/numbers.py`` is a small example.
"""
