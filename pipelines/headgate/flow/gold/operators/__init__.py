"""Gold operators: one folder each, found by its name (``headgate.registry``).

``contract.py`` says what a folder has to bring. ``windows/`` is an example, ``tests/toys/slots.py``
a small one.
"""
