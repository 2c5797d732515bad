"""What happens to loads if bronze is restored, or is read again from its source.

Bronze has each record of history once for each load that has read it. So only what bronze has of a
load is read again: a load that a restore has taken back may have been requested a second time
since.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from headgate.declaration.kinds import BRONZE
from headgate.failpoints import failpoint
from headgate.history.loads.requests import LoadRequest, Wish, all_requests, change_request
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.load import Load
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table


def reopen_loads(layout: Layout, pipeline: str, tables: Collection[str]) -> None:
    """Request that everything that some bronze ``tables`` have of loads is read again. If bronze
    still has all of a load, the load is done at once."""
    for request, load in loads_into(layout, pipeline, tables):
        if changes := changes_to_reopen(request, load):
            change_request(layout, request, **changes)
            failpoint("load.reopened")


def reopen_done_loads(layout: Layout, source: str) -> None:
    """As ``reopen_loads``, before a damaged log of bronze is repaired: the log cannot tell what was
    lost."""
    for request in all_requests(layout):
        if request.wish == "done" and request.source == source:
            change_request(layout, request, wish="open")


def loads_into(
    layout: Layout, pipeline: str, tables: Collection[str]
) -> Iterator[tuple[LoadRequest, Load | None]]:
    """The loads into some bronze tables, oldest first, and what these tables have of each."""
    found: dict[str, BronzePayload] = {}
    for request in all_requests(layout):
        path = BRONZE.path(request.source)
        if path in tables:
            if path not in found:
                table = Table(layout.storage, path, pipeline=pipeline)
                state = table.refresh() if table.exists else State.empty(path)
                found[path] = BronzePayload.of(state)
            yield request, found[path].load(request.id)


def changes_to_reopen(request: LoadRequest, load: Load | None) -> Mapping[str, Any]:
    """The changes that reopen a request of which bronze has ``load``; empty if nothing is to be
    changed."""
    if request.wish == "open":
        return {}
    if request.wish in ("done", "taken back") and request.is_read(load):
        return {"wish": "open"}
    if load is None:
        return {}
    if request.until is not None and request.wish != "cancelled":
        return {"wish": "open"}  # it was paused or stopped while it was read again
    then = "taken back" if request.wish == "done" else request.wish
    return {"wish": "open", "until": dict(load.offsets), "then": then}


def take_back_loads(layout: Layout, bronze: BronzePayload, source: str) -> None:
    """Record which loads are taken back, and which are done again, before the bronze table of a
    source gets the earlier payload ``bronze``. An open load continues from there."""
    for request in all_requests(layout):
        is_over = request.wish in ("done", "taken back") and request.source == source
        then: Wish = "done" if request.is_read(bronze.load(request.id)) else "taken back"
        if is_over and request.wish != then:
            change_request(layout, request, wish=then)
