"""Suites and Great Expectations: validation, export, import, suites proposed from a table's rows.

The only package that may import Great Expectations, and only inside functions: the import takes
seconds.
"""
