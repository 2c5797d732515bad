"""Gates: a version of a gold table that breaks a rule never becomes visible.

``Table.commit`` asks the table's gate (``gate.py``) before it commits. A held version has no
commit, so no reader can see it.
"""
