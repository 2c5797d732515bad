"""Finds streams that nobody looks after, and ends those that were to end."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headgate.airflow.operators.stream_task import StreamTask
from headgate.airflow.task_state import OVER, state_of
from headgate.storage.layout import Layout
from headgate.storage.stopping import request_stop, stop_asked
from headgate.supervision.claim import claimed, is_orphaned

if TYPE_CHECKING:
    from airflow.sdk import Context


class Reconciler(StreamTask):
    """A stream whose task was marked or deleted while no triggerer was there, and whose DAG has had
    no run since, is asked to end. Returns in words what it found."""

    def execute(self, context: Context) -> str:
        result = f"{self.name}: {self._reconcile(self._stream.layout)}"
        self.log.info(result)
        return result

    def _reconcile(self, layout: Layout) -> str:
        jobs = self._launcher.probe(self._stream, datetime.now(UTC))
        if not any(job.is_alive for job in jobs):
            return "no driver runs"
        held = claimed(layout)
        if held is None or held.is_over:
            return f"it runs, and nobody looks after it: switch {self.name}__stream on"
        state = state_of(*held.by)
        if state not in OVER:
            return f"it runs; the run {held.by[1]} looks after it"
        if not is_orphaned(held, (), stop_asked(layout)):
            return f"it runs since somebody started it; the run {held.by[1]} is {state}"
        request_stop(layout)
        return f"the run {held.by[1]} is {state}, so it is asked to end"
