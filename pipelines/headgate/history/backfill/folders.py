"""The folders of backfills, below the pipeline's own folder.

The folder of a backfill has its scratch tables while it runs. Its patches are kept as long as
bronze, a savepoint, a running copy of one or a waiting request has the operation that uses them.
Copies that were killed have left folders here, too.
"""

from __future__ import annotations

from contextlib import suppress

from headgate.declaration.model import Pipeline
from headgate.failpoints import failpoint
from headgate.flow.operations.backfill import NAME
from headgate.flow.operations.requests import OperationRequest, waiting_operations
from headgate.history.savepoints.holds import FOLDER, is_held, savepoints_and_held
from headgate.history.savepoints.savepoint import Savepoint, saved_operations
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.payloads.bronze import BronzePayload, Operation
from headgate.lake.tables.snapshot import head_table

SCRATCH = "scratch"


def remove_ended_backfills(layout: Layout, pipeline: Pipeline) -> None:
    """Remove the files of backfills that have ended or were killed, except patches that an
    operation uses."""
    ended = [name for name in layout.storage.folders(FOLDER) if not is_held(layout, name)]
    if not ended:
        return
    # Read the requests first: one that bronze processes meanwhile is then among the operations.
    known: list[OperationRequest | Operation] = [*waiting_operations(layout)]
    known += BronzePayload.of(head_table(layout, pipeline).refresh()).operations
    for savepoint in savepoints_and_held(layout):
        with suppress(LogGapError):  # it cannot be restored in any case
            known += saved_operations(layout, savepoint) if isinstance(savepoint, Savepoint) else ()
    asked = {str(each.document.get("backfill")) for each in known if each.name == NAME}
    for name in ended:
        failpoint("backfill.removing")
        if is_held(layout, name):  # a new backfill has just begun to use it
            continue
        rest = f"/{SCRATCH}" if name in asked else ""
        layout.storage.remove(f"{FOLDER}/{name}{rest}")
