"""Takes in requested replays and operations, in bronze's job, between two batches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import datetime

import pyarrow as pa

from headgate.declaration.contracts.operation import Document, operation_named
from headgate.declaration.graph import Graph
from headgate.declaration.kinds import GOLD
from headgate.declaration.quantities import plural
from headgate.driver.runtime import PipelineRuntime
from headgate.failpoints import failpoint
from headgate.flow.bronze.copies import CorrectedCopies
from headgate.flow.operations.carrying_out import REJECTION, amend, amend_rejected
from headgate.history.loads.requests import (
    LoadRequest,
    applies,
    decide_load,
    decide_load_change,
    loads_of,
)
from headgate.history.replay.requests import ReplayDocument, requested_copies
from headgate.lake.control.requests import Request, find_request, remove_request, waiting_requests
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import (
    LOAD,
    LOAD_CHANGE,
    REPLAY,
    Decision,
    Position,
)
from headgate.lake.tables.load import TooManyLoadsError


def requests_for_now(layout: Layout, runtime: PipelineRuntime) -> tuple[Request, ...]:
    """The requests that can be taken in now, the oldest first. A request waits that touches tables
    of a source for which nothing may be decided (``PipelineRuntime.undecidable``), and the
    rejection of an operation on a damaged table."""
    if "bronze" not in runtime.layers:
        return ()
    waiting, held = waiting_requests(layout), runtime.damaged.held
    loads = loads_of(runtime.control.refresh(), waiting)
    return tuple(
        request
        for request in waiting
        if runtime.undecidable.isdisjoint(sources_of(request, runtime.graph, loads))
        and not (request.kind == REJECTION and _rejected_for(request) in held)
    )


def sources_of(request: Request, graph: Graph, loads: Iterable[LoadRequest]) -> frozenset[str]:
    """The declared sources whose tables a request touches. ``loads`` are those of the pipeline,
    also those that are not decided yet."""
    document = request.document
    if request.kind == REPLAY:
        return frozenset({ReplayDocument.of(request).source})
    if request.kind == LOAD:
        return frozenset({document["source"]})
    if request.kind == LOAD_CHANGE:
        return frozenset(each.source for each in loads if each.id == document["load"])
    if request.kind == REJECTION:
        touched: Collection[str] = (_rejected_for(request),)
    else:
        touched = operation_named(request.kind).touches(graph, document)
    return frozenset(
        source for path in touched if path in graph for source in graph.sources_of(path)
    )


def _rejected_for(request: Request) -> str:
    return GOLD.path(request.document["table"])


def written_by(requests: Iterable[Request]) -> frozenset[str]:
    """The sources whose bronze tables some requests write."""
    replays = (each for each in requests if each.kind == REPLAY)
    return frozenset(ReplayDocument.of(each).source for each in replays)


def take_in_requests(
    layout: Layout,
    runtime: PipelineRuntime,
    clock: Callable[[], datetime],
    say: Callable[[str], None],
    sources: Collection[str] | None = None,
) -> bool:
    """Decide on the requests for now; the next catch-up brings silver and gold up and carries the
    decisions out. The caller must hold the batch lock, and the locks of the bronze stages of
    ``sources``, or (None) no stream runs. Replays of other sources wait. Returns whether a request
    was taken in.

    Raises CommitRefusedError, FencedError or UnknownOperationError.
    """
    taken = False
    for request in requests_for_now(layout, runtime):
        if request.kind == REPLAY:
            if sources is not None and ReplayDocument.of(request).source not in sources:
                continue
            say(_replay(layout, runtime, request, clock))
        elif request.kind == REJECTION:
            _reject(runtime, request.document, clock())
        elif request.kind in (LOAD, LOAD_CHANGE):
            _load(runtime, request, clock(), say)
        else:
            _operate(runtime, request, clock)
        remove_request(layout, request)
        taken = True
    return taken


def _operate(runtime: PipelineRuntime, request: Request, clock: Callable[[], datetime]) -> None:
    decisions, kind = runtime.control.refresh(), operation_named(request.kind)
    is_meant = kind.is_meant_at(request.document, decisions.generation)
    if is_meant and decisions.decided(request.id) is None:
        runtime.decide_operation(request.kind, request.document, clock(), request.id)
        failpoint("operation.taken_in")


def _load(
    runtime: PipelineRuntime, request: Request, now: datetime, say: Callable[[str], None]
) -> None:
    """Decide on a load that begins, or on a change of one. The load of a source that is not
    declared any more is dropped, and a change that does not apply any more."""

    def decide(position: Position) -> None:
        control, document = runtime.control, request.document
        if control.known.decided(request.id) is not None:
            return
        if request.kind == LOAD_CHANGE:
            load, changes = document["load"], document["changes"]
            known = {each.id: each for each in loads_of(control.known)}
            if applies(changes, known.get(load)):
                decide_load_change(control, load, changes, position, now, request.id)
        elif document["source"] in runtime.bronze:
            decide_load(control, request, position, now)

    try:
        runtime.decide(decide)
    except TooManyLoadsError as error:
        say(f"load {request.id} does not begin: {error.message}")


def _reject(runtime: PipelineRuntime, document: Document, now: datetime) -> None:
    """Reject an operation, unless its table is not declared any more, or a rebuild of the table may
    have carried it out already: then the table's job asks again after the rebuild."""
    path = GOLD.path(document["table"])
    is_declared = path in runtime.pipeline.definitions
    if is_declared and (runtime.rebuild is None or path not in runtime.rebuild.tables):
        gold = runtime.table(path).reader()
        runtime.decide(
            lambda position: amend_rejected(runtime.control, gold, document, position, now)
        )


class _VoidError(Exception):
    """A replay must not be carried out."""


def _replay(
    layout: Layout, runtime: PipelineRuntime, request: Request, clock: Callable[[], datetime]
) -> str:
    """Decide on a replay, and ingest its copies as the next batch of bronze. After a crash in
    between, only the second is done. Records stay refused if the request or its decision is void,
    or its copies are damaged. Returns a message about the result."""
    document = ReplayDocument.of(request)
    if (stage := runtime.bronze.get(document.source)) is None:
        return f"the replay {request.id} is void: {document.source} is not declared"
    decisions, void = runtime.control.refresh(), f"the replay {request.id} is void"
    decision = decisions.decided(request.id)
    if decision is not None:
        if decision.number <= stage.refresh().operation:
            return f"the replay {request.id} is done"
        in_force = {each.number for each in decisions.replays_of(document.source)}
        if decision.number not in in_force:
            return f"{void}: the tables have changed since; ask for it again"
    try:
        source = runtime.pipeline.sources[document.source]
        copies = CorrectedCopies(source, requested_copies(layout, request))
    except (OSError, pa.ArrowInvalid) as error:
        if decision is not None:
            _leave_out(runtime, decision, clock())
        return f"{void}: {error}"

    def decide(position: Position) -> Decision:
        # It may have been taken back while its copies were read.
        if document.is_void(runtime.control.known) or find_request(layout, request.id) is None:
            raise _VoidError
        given = REPLAY, request.document, position, clock()
        return runtime.control.append(*given, request=request.id)

    try:
        n = stage.replay(copies, lambda: (decision or runtime.decide(decide)).number, clock()).n
    except _VoidError:
        return f"{void}: the tables have changed since, or it was taken back; ask for it again"
    failpoint("replay.committed")
    return f"replayed {plural(document.rows, 'record')} as batch {n:,}"


def finish_replays(
    layout: Layout,
    runtime: PipelineRuntime,
    clock: Callable[[], datetime],
    say: Callable[[str], None],
) -> None:
    """Finish the replays that a driver has decided on before it was killed: carry them out, or
    leave out those that a person has taken back since. Called before the first batch of this
    driver, which would count as the batch of the replay. The publication of a rebuild of bronze
    takes the replays out of force, so those into a rebuild wait for it, as those into a damaged
    table do."""
    if "bronze" not in runtime.layers:
        return
    decisions, waits = runtime.control.refresh(), runtime.undecidable
    for source, stage in runtime.bronze.items():
        if source in waits:
            continue
        done = stage.refresh().operation
        for replay in decisions.replays_of(source):
            if replay.number <= done:
                continue
            if replay.request and (request := find_request(layout, replay.request)):
                say(_replay(layout, runtime, request, clock))
                remove_request(layout, request)
            else:
                _leave_out(runtime, decisions.rows[replay.number - 1], clock())


def _leave_out(runtime: PipelineRuntime, decision: Decision, now: datetime) -> None:
    nothing = {decision.number: {**decision.document, "rows": 0}}
    runtime.decide(lambda position: amend(runtime.control, nothing, position, now))
