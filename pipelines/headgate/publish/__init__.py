"""Rows of tables for sinks: final windows, changes of windows, late and quarantined rows.

A publication is a stage like any other: it catches up with its table's log. What it sends may be
sent again after a crash, under the same ids; nothing is ever left out.
"""
