"""Declarations: from YAML to frozen values, checked before anything starts (``load.py``).

``reading/`` reads YAML and checks it against the keys that a declaration may have (``keys/``);
``sections/`` builds the values of ``model.py`` from what was read. ``types.py`` and
``expressions/`` are the types of columns and Spark SQL over them; ``suites/`` are the rules of
tables, and ``expectations/`` connects them with Great Expectations. ``contracts/`` says what
operators, sinks, sources, operations and measures provide. ``kinds.py`` and ``graph.py`` are the
tables of a pipeline. ``plan.py`` prints a declaration, ``digest.py`` says whether two mean the
same, and ``reference/`` writes the reference of all keys. ``catalyst/`` is a process of its own, in
which Spark analyses expressions.
"""
