"""Gold tables whose results are computed once: joins, and whatever else appends rows.

``operator.py`` is the base of their operators, ``inputs.py`` reads what they read, ``stage.py`` is
their stage, and ``corrections.py`` brings late rows in.
"""
