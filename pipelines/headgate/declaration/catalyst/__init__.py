"""Spark's analysis of an expression, without a session: a process of its own, which reads requests
and writes answers (``__main__.py``)."""
