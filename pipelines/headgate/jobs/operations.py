"""Operations: rare changes to tables outside the flow of batches, each carried out exactly once.

The intent is a commit on bronze with a rising number, so it is fenced like every commit and has
its place in the order of batches: behind bronze's n. Gold carries it out exactly there, before any
later batch, and again so where a gold table is built a second time. Nothing marks it done and
nothing is removed; a gold table has it to do while its own number is lower (docs/exactly-once.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from headgate.failpoints import failpoint
from headgate.jobs.runtime import PipelineRuntime
from headgate.tables.state import commit_time

Clock = Callable[[], datetime]


def intend_closing(runtime: PipelineRuntime, clock: Clock) -> None:
    """Ask for every open gold row to become final. Bronze's job does this, between batches."""
    if not runtime.pipeline.gold:
        return
    bronze = runtime.bronze.table
    held = bronze.refresh()
    number = held.operation + 1
    state = replace(
        held.held("operation", bronze.epoch),
        operation=number,
        drains=(*held.drains, (number, held.n)),
        at=commit_time(clock()),
    )
    bronze.commit(state)
    failpoint("operation.intended")
