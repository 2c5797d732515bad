"""Suites of rules: ``expectations/NAME.yml``.

``rows.py`` has the expectations about rows, as SQL conditions, ``versions.py`` those about versions
of gold. Great Expectations itself is imported only in ``headgate.declaration.expectations``.
"""
