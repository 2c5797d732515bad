"""Loads that are read again, because bronze is read again from its source.

Bronze has each record of history once for each load that has read it. So only what bronze has of a
load is read again: a load that a restore has taken back may have been requested a second time
since.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any

from headgate.declaration.kinds import BRONZE
from headgate.failpoints import failpoint
from headgate.history.loads.requests import LoadRequest, decide_load_change, loads_of
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import ControlTable, Decisions, Position
from headgate.lake.tables.load import Load
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table


def reopen_loads(
    layout: Layout,
    control: ControlTable,
    pipeline: str,
    tables: Collection[str],
    position: Position,
    now: datetime,
) -> None:
    """Decide that everything that some bronze ``tables`` have of loads is read again. If bronze
    still has all of a load, the load is done at once."""
    for load, held in loads_into(layout, pipeline, tables, control.known):
        if changes := changes_to_reopen(load, held):
            decide_load_change(control, load.id, changes, position, now)
            failpoint("load.reopened")


def reopen_done_loads(
    control: ControlTable, source: str, position: Position, now: datetime
) -> None:
    """As ``reopen_loads``, after a damaged log of bronze was repaired: the log cannot tell what was
    lost."""
    for load in loads_of(control.known):
        if load.wish == "done" and load.source == source:
            decide_load_change(control, load.id, {"wish": "open"}, position, now)


def loads_into(
    layout: Layout, pipeline: str, tables: Collection[str], decisions: Decisions
) -> Iterator[tuple[LoadRequest, Load | None]]:
    """The loads into some bronze tables, oldest first, and what these tables have of each."""
    found: dict[str, BronzePayload] = {}
    for load in loads_of(decisions):
        path = BRONZE.path(load.source)
        if path in tables:
            if path not in found:
                table = Table(layout.storage, path, pipeline=pipeline)
                state = table.refresh() if table.exists else State.empty(path)
                found[path] = BronzePayload.of(state)
            yield load, found[path].load(load.id)


def changes_to_reopen(load: LoadRequest, held: Load | None) -> Mapping[str, Any]:
    """The changes that reopen a load of which bronze has ``held``; empty if nothing is to be
    changed."""
    if load.wish == "open":
        return {}
    if load.wish in ("done", "taken back") and load.is_read(held):
        return {"wish": "open"}
    if held is None:
        return {}
    if load.until is not None and load.wish != "cancelled":
        return {"wish": "open"}  # it was paused or stopped while it was read again
    then = "taken back" if load.wish == "done" else load.wish
    return {"wish": "open", "until": dict(held.offsets), "then": then}
