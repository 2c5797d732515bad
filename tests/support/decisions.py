"""Decisions in the control tables of tests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from headgate.declaration.kinds import CONTROL
from headgate.history.savepoints.resets import ResetIntent, Resets, ResetTarget, decide_reset
from headgate.lake.storage.files import Storage
from headgate.lake.tables.decisions import (
    ControlTable,
    Decision,
    Position,
    SourcePosition,
    position_of,
)
from headgate.lake.tables.table import Table


def control_of(storage: Storage, pipeline: str, epoch: int = 0) -> ControlTable:
    """The control table in the folder of a pipeline, created if it is not there. With ``epoch``, it
    is fenced."""
    control = ControlTable.of(storage, pipeline)
    control.shape.create(CONTROL.name)
    if epoch:
        control.table.fence(epoch)
    control.refresh()
    return control


def resets_of(storage: Storage, pipeline: str) -> Resets:
    return Resets(ControlTable.of(storage, pipeline))


def at(**batches: int) -> Position:
    """A position: the batch id of each source, by its name."""
    return {source: SourcePosition(n) for source, n in batches.items()}


def append(
    control: ControlTable,
    kind: str,
    document: Mapping[str, Any],
    position: Position,
    now: datetime,
    **more: Any,
) -> Decision:
    """Append a decision as bronze's job does: to the decisions as they are now."""
    control.refresh()
    return control.append(kind, document, position, now, **more)


def reset_to(
    control: ControlTable,
    tables: Mapping[str, ResetTarget],
    now: datetime,
    *,
    bronze: Mapping[str, Table] | None = None,
    **more: Any,
) -> ResetIntent:
    """Decide on a reset of some tables. ``bronze`` has the bronze tables by source; without them,
    the decision has no position. No operation becomes void unless ``more`` says so."""
    position: Position = position_of(bronze or {})
    said = {"why": "a test", "void": control.refresh().void, **more}
    return decide_reset(control, tables, position, now, **said)
