"""Sources of events. A source is a log: it has offsets, and a range can be read again.

One folder for each kind, found by its name (``headgate.registry``); ``contract.py`` says what it
has to bring. ``tests/toys/numbers.py`` is a small example.
"""
