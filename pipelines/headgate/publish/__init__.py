"""Rows of tables for sinks: final windows, changes of windows, late and quarantined rows.

A publication is a stage like any other: it catches up with its table's log. After a crash, rows may
be sent again with the same ids. No row is ever left out.
"""
