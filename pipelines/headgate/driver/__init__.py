"""A driver: one process that keeps the tables of a pipeline, or of some of its layers, up to date.

The life of a run, in the order in which it happens:

- ``task`` says what to do; ``refusing`` checks before a JVM starts whether the driver would refuse.
- ``driver`` runs it: it takes the ``lease``, starts the Spark ``session``, and opens the tables
  (``opening``), which also begins rebuilds. ``run`` has what all parts of the run then share.
- ``stream`` supervises all on one thread. Each source has an ``input_stream``: a thread lists it,
  and Spark plans batches from it (``planning``) and runs them on another thread (``batch_runner``).
  ``source_loop`` reads a range of a source, retries, and commits it to bronze (``pipeline_sources``
  has the loops). Then ``stages`` bring silver and gold up to bronze, gold tables with a step when
  it is due (``step_schedule``); jobs of silver and gold follow their upstream tables instead
  (``job_input``). ``runtime`` has all tables and those of a rebuild.
- Between batches: requests are taken in (``operating``), history is loaded (``loading``), late rows
  are replayed and savepoints are taken (``schedules``), files are compacted and removed
  (``maintaining``), and rows are published (``publishing``).
- ``progress`` is the status document. ``run_control`` has stops and pauses. ``outages`` decides
  when a source that does not answer is tried again. ``error_translation`` finds the cause of a
  failed batch.

``rereading`` is for restores and repairs: it checks what a source still has.
"""
