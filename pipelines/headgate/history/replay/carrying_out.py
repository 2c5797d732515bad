"""Carries out a replay that was requested, between two batches of bronze's job."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import pyarrow as pa

from headgate.declaration.model import Source
from headgate.declaration.quantities import plural
from headgate.failpoints import failpoint
from headgate.flow.bronze.copies import CorrectedCopies
from headgate.flow.bronze.stage import BronzeStage
from headgate.history.replay.requests import Request, copies_of, remove, waiting
from headgate.lake.storage.layout import Layout


def carry_out(
    layout: Layout, source: Source, stage: BronzeStage, clock: Callable[[], datetime]
) -> str | None:
    """Commit the copies of a waiting request to bronze, in one commit. A request that is void, or
    whose copies are damaged, is removed: the records that it corrects stay refused.

    Returns a message about the result; None if no request for ``source`` waits. Raises
    CommitRefusedError or FencedError.
    """
    request = waiting(layout)
    if request is None or request.source != source.name:
        return None
    held = stage.table.refresh()
    said = f"the replay {request.id} is done"
    if not request.is_done(held):
        said = f"the replay {request.id} is void: the tables have changed since; ask for it again"
        if not request.is_void(held):
            try:
                copies = CorrectedCopies(source, copies_of(layout, request))
            except (OSError, pa.ArrowInvalid) as error:
                said = f"the replay {request.id} is void: {error}"
            else:
                said = _replay(layout, stage, request, copies, clock())
    remove(layout, request)
    return said


class _TakenBack(Exception):
    """The request was cancelled while its copies were read."""


def _replay(
    layout: Layout, stage: BronzeStage, request: Request, copies: CorrectedCopies, now: datetime
) -> str:
    def require_waiting() -> None:
        if waiting(layout) != request:
            raise _TakenBack

    try:
        state = stage.replay(copies, request.id, request.reason, now, require_waiting)
    except _TakenBack:
        return f"the replay {request.id} was taken back"
    failpoint("replay.committed")
    return f"replayed {plural(request.rows, 'record')} as batch {state.n:,}"
