"""The rules of gold tables with several inputs, as a model in plain Python.

- ``logs.py``: sources, their batches, and the decisions among them;
- ``definitions.py``: which results some rows have, for each kind of operator;
- ``tables.py``: a table that reads the logs in steps, and the rules that it obeys;
- ``test_inputs.py``: whatever the steps are, the table has the same rows; and what each rule is
  for.

Times are small integers.
"""
