"""Publications: final windows, changes of windows, late and quarantined rows, and events of gates.

A publication is a stage like any other: it catches up with its table's log. After a crash, rows may
be sent again with the same ids, but no row is skipped.
"""
