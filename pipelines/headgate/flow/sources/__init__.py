"""Sources of events. A source is a log: it has offsets, and a range can be read again.

Each kind of source has a folder, which is found by its name (``headgate.registry``).
``declaration/contracts/source.py`` defines what a folder must provide, ``micro_batches.py`` what
its reader does: it plans and reads ranges, and commits nothing. ``tests/toys/numbers.py`` is a
small example.
"""
