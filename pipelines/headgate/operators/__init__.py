"""Gold operators: one folder each, found by its name (``headgate.registry``)."""
