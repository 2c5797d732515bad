"""What a member of each kind provides: one contract and one registry per file.

``operator.py`` is for gold operators, ``sink.py`` for sinks, ``source.py`` for kinds of sources,
``operation.py`` for operations on tables, and ``measure.py`` for measures. A contract has the part
that reads a declaration and the part that runs. The types of the part that runs are named for the
type checker only: a contract imports nothing of ``flow`` or ``lake``, and declarations are read
without Spark. So members import Spark, and modules that import it, only inside methods.
"""
