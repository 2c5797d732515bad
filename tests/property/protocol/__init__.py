"""The protocol of commits, as a model that is small enough to try every interleaving.

The model has no Spark and no files: a table is its log, a process is between two steps, and a step
is a function from one world to the worlds that may follow. Where to look:

- ``rules.py``: the rules of the protocol, one line each;
- ``tables.py``: the tables: control, and those of each source;
- ``delta.py``, ``past.py``: what a Delta table guarantees, and what can be read from its log;
- ``scenario.py``, ``steps.py``: the processes of a search, and their steps;
- ``starting.py``, ``routing.py``, ``sourcing.py``, ``staging.py``, ``operating.py``: what a driver
  does; ``saving.py``, ``resetting.py``: savepoints, restores, rebuilds;
- ``invariants.py``: what must hold;
- ``entries.py``, ``histories.py``: convert the logs of real lakes into the model's terms and check
  the invariants after each commit;
- ``players.py``, ``lockstep.py``: run the same schedule of processes in the model and, on real
  tables, in the engine, and compare both after each commit; ``traces.py``: schedules from the
  search's traces;
- ``search.py``, ``essence.py``: every interleaving of a scenario. At every point, all processes may
  die and new ones start, any process may pause for any time, and batches that were not committed
  are planned again with other boundaries.

``test_search.py`` and, for two sources, ``test_sources.py`` find no violation in the protocol.
``test_mutants.py`` leaves out one rule at a time and finds a violation each time.
``test_stateful.py`` walks at random through bigger scenarios.
``searched.py`` records which model was searched: only `make nightly` searches an unchanged model.
A violation comes with its trace: the steps that lead to it, in order, each with its process.
"""
