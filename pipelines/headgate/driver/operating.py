"""Takes requested replays and operations into bronze, in bronze's job, between two batches."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime

import pyarrow as pa

from headgate.declaration.contracts.operation import Document, operation_named
from headgate.declaration.kinds import GOLD
from headgate.declaration.model import Source
from headgate.declaration.quantities import plural
from headgate.driver.runtime import PipelineRuntime
from headgate.failpoints import failpoint
from headgate.flow.bronze.copies import CorrectedCopies
from headgate.flow.bronze.stage import BronzeStage
from headgate.flow.operations import requests
from headgate.flow.operations.carrying_out import tell_rejected
from headgate.history.replay.requests import (
    ReplayRequest,
    remove_replay,
    requested_copies,
    waiting_replay,
)
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
    return waiting_replay(layout) is not None or bool(requests.waiting_operations(layout))


def written_by_requests(layout: Layout, runtime: PipelineRuntime) -> Collection[str]:
    """The sources whose bronze tables the waiting requests write."""
    replay = waiting_replay(layout)
    sources = set() if replay is None else {replay.source}
    return sources | ({runtime.graph.head.name} if requests.waiting_operations(layout) else set())


def take_in_requests(
    layout: Layout,
    runtime: PipelineRuntime,
    clock: Callable[[], datetime],
    say: Callable[[str], None],
) -> bool:
    """Commit a waiting replay and the operations of waiting requests to bronze; the next catch-up
    brings silver and gold up and carries out the operations. The caller must hold the locks of the
    bronze stages of ``written_by_requests``, and the batch lock.
    Returns whether a request was waiting.

    Raises CommitRefusedError, FencedError or UnknownOperationError.
    """
    if not has_requests(layout, runtime):
        return False
    for name, stage in runtime.bronze.items():
        done = _carry_out_replay(layout, runtime.pipeline.sources[name], stage, clock)
        if done is not None:
            say(done)
    for request in requests.waiting_operations(layout):
        if request.name == requests.REJECT:
            _reject(runtime, request.document, clock())
            requests.remove_request(layout, request)
            continue
        held = runtime.head.table.refresh()
        is_meant = operation_named(request.name).is_meant_at(request.document, held.generation)
        if is_meant and request.operation(held) is None:
            runtime.request_operation(request.name, request.document, clock())
            failpoint("operation.taken_in")
        requests.remove_request(layout, request)
    return True


def _reject(runtime: PipelineRuntime, document: Document, now: datetime) -> None:
    """Reject an operation, unless a rebuild of the table may have carried it out already: then the
    table's job asks again after the rebuild."""
    path = GOLD.path(document["table"])
    if runtime.rebuild is None or path not in runtime.rebuild.tables:
        gold = runtime.table(path).reader()
        tell_rejected(runtime.head.table, gold, document, now)


def _carry_out_replay(
    layout: Layout, source: Source, stage: BronzeStage, clock: Callable[[], datetime]
) -> str | None:
    """Commit the copies of a waiting request to bronze, in one commit. A request that is void, or
    whose copies are damaged, is removed: the records that it corrects stay refused.

    Returns a message about the result; None if no request for ``source`` waits. Raises
    CommitRefusedError or FencedError.
    """
    request = waiting_replay(layout)
    if request is None or request.source != source.name:
        return None
    held = stage.refresh()
    said = f"the replay {request.id} is done"
    if not request.is_done(held):
        said = f"the replay {request.id} is void: the tables have changed since; ask for it again"
        if not request.is_void(held):
            try:
                copies = CorrectedCopies(source, requested_copies(layout, request))
            except (OSError, pa.ArrowInvalid) as error:
                said = f"the replay {request.id} is void: {error}"
            else:
                said = _replay(layout, stage, request, copies, clock())
    remove_replay(layout, request)
    return said


class _TakenBack(Exception):
    """The request was cancelled while its copies were read."""


def _replay(
    layout: Layout,
    stage: BronzeStage,
    request: ReplayRequest,
    copies: CorrectedCopies,
    now: datetime,
) -> str:
    def require_waiting() -> None:
        if waiting_replay(layout) != request:
            raise _TakenBack

    try:
        state = stage.replay(copies, request.id, request.reason, now, require_waiting)
    except _TakenBack:
        return f"the replay {request.id} was taken back"
    failpoint("replay.committed")
    return f"replayed {plural(request.rows, 'record')} as batch {state.n:,}"
