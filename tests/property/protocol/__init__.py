"""The protocol of commits, as a model small enough to try every interleaving of.

The model has no Spark and no file: a table is its log, a process is between two steps, and a step
is a function from one world to the worlds that may follow. Where to look:

- ``rules.py``: the rules of the protocol, one line each;
- ``delta.py``, ``past.py``: what a Delta table promises, what its log tells, and nothing more;
- ``scenario.py``, ``steps.py``: who plays, and which steps there are;
- ``starting.py``, ``routing.py``, ``sourcing.py``, ``staging.py``, ``operating.py``: what a driver
  does; ``saving.py``, ``resetting.py``: savepoints, restores, rebuilds;
- ``invariants.py``: what must hold;
- ``entries.py``, ``histories.py``: the logs of real lakes in these terms, held against these
  invariants after each commit that was ever made;
- ``players.py``, ``lockstep.py``: the same schedule of processes in the model and in the engine,
  on real tables, compared after each commit; ``traces.py``: schedules from the search's traces;
- ``search.py``, ``essence.py``: every interleaving of a scenario; at every point all processes may
  die and new ones start, any may pause for as long as it likes, and batches that were not committed
  are planned again with other boundaries.

``test_search.py`` finds no violation in the protocol; ``test_mutants.py`` leaves out one rule at
a time and finds one each time; ``test_stateful.py`` walks at random through bigger scenarios.
``searched.py`` says which model was searched: an unchanged one is searched by `make nightly` alone.
A violation comes with its trace: the steps that lead to it, by process and in order.
"""
