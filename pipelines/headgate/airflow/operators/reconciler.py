"""Finds unsupervised streams, and stops those whose task was ended."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headgate.airflow.operators.stream_task import StreamTask
from headgate.airflow.task_state import OVER, is_to_stop, state_of
from headgate.lake.control.claim import claimed
from headgate.lake.control.driver_requests import request_stop, stop_asked
from headgate.lake.storage.layout import Layout

if TYPE_CHECKING:
    from airflow.sdk import Context


class Reconciler(StreamTask):
    """Stops a stream whose task was marked or deleted while no triggerer ran, and whose DAG had no
    run since. Returns the result as text."""

    def execute(self, context: Context) -> str:
        result = f"{self.name}: {self._reconcile(self._stream.layout)}"
        self.log.info(result)
        return result

    def _reconcile(self, layout: Layout) -> str:
        jobs = self._launcher.probe(self._stream, datetime.now(UTC))
        if not any(job.is_alive for job in jobs):
            return "no driver runs"
        unsupervised = f"it runs without supervision: switch {self.name}__stream on"
        if (held := claimed(layout)) is None:
            return unsupervised
        state = state_of(*held.by)
        if state not in (*OVER, "upstream_failed"):
            return f"it runs; the run {held.by[1]} supervises it"
        if held.is_over or state not in OVER:
            return unsupervised
        if not is_to_stop(held, state, stop_asked(layout)):
            return f"it was started again since; the run {held.by[1]} is {state}"
        request_stop(layout, held.token)
        return f"the run {held.by[1]} is {state}, so it is asked to stop"
