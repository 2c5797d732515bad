"""Gold operators: one folder each, found by its name (``headgate.registry``).

``declaration/contracts/operator.py`` defines what a folder must provide; ``fold_operator.py`` is
the base of those that fold. ``windows/`` is an example, ``tests/toys/slots.py`` a small one.
"""
