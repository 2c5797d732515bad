"""Takes requested replays and operations into bronze, in bronze's job."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from headgate.declaration.contracts.operation import Document, operation_named
from headgate.declaration.kinds import GOLD
from headgate.driver.runtime import PipelineRuntime
from headgate.failpoints import failpoint
from headgate.flow.operations import rejecting, requests
from headgate.history.replay import requests as replays
from headgate.history.replay.carrying_out import carry_out
from headgate.lake.storage.layout import Layout


def takes_requests(runtime: PipelineRuntime) -> bool:
    """Whether this job writes bronze and can take in requests now. It cannot during a rebuild of
    bronze, whose batches come only from the source."""
    rebuilt = runtime.rebuild.tables if runtime.rebuild else ()
    return "bronze" in runtime.layers and runtime.head.table.name not in rebuilt


def has_requests(layout: Layout, runtime: PipelineRuntime) -> bool:
    """Whether there is a request that can be taken in now."""
    if not takes_requests(runtime):
        return False
    return replays.waiting(layout) is not None or bool(requests.waiting(layout))


def take_in_requests(
    layout: Layout,
    runtime: PipelineRuntime,
    clock: Callable[[], datetime],
    say: Callable[[str], None],
) -> bool:
    """Commit a waiting replay and the operations of waiting requests to bronze; the next catch-up
    brings silver and gold up and carries out the operations. The caller must hold the batch lock.
    Returns whether a request was waiting.

    Raises CommitRefusedError, FencedError or UnknownOperationError.
    """
    if not has_requests(layout, runtime):
        return False
    for name, stage in runtime.bronze.items():
        done = carry_out(layout, runtime.pipeline.sources[name], stage, clock)
        if done is not None:
            say(done)
    for request in requests.waiting(layout):
        if request.name == rejecting.NAME:
            _reject(runtime, request.document, clock())
            requests.remove(layout, request)
            continue
        held = runtime.head.table.refresh()
        is_meant = operation_named(request.name).is_meant_at(request.document, held.generation)
        if is_meant and request.operation(held) is None:
            runtime.request_operation(request.name, request.document, clock())
            failpoint("operation.taken_in")
        requests.remove(layout, request)
    return True


def _reject(runtime: PipelineRuntime, document: Document, now: datetime) -> None:
    """Reject an operation, unless a rebuild of the table may have carried it out already: then the
    table's job asks again after the rebuild."""
    path = GOLD.path(document["table"])
    if runtime.rebuild is None or path not in runtime.rebuild.tables:
        gold = runtime.table(path).reader()
        rejecting.tell_rejected(runtime.head.table, gold, document, now)
