"""Sinks of publications: one folder each, found by its name (``headgate.registry``)."""
