"""The folders of backfills, below the pipeline's own folder.

The folder of a backfill has its scratch tables while it runs. Its patches are kept as long as
a decision or a waiting request has them.
Copies that were killed have left folders here, too.
"""

from __future__ import annotations

from headgate.declaration.model import Pipeline
from headgate.failpoints import failpoint
from headgate.flow.operations.backfill import NAME
from headgate.history.savepoints.holds import FOLDER, is_held
from headgate.lake.control.requests import waiting_requests
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import ControlTable

SCRATCH = "scratch"


def remove_ended_backfills(layout: Layout, pipeline: Pipeline) -> None:
    """Remove the files of backfills that have ended or were killed, except patches that an
    operation uses."""
    ended = [name for name in layout.storage.folders(FOLDER) if not is_held(layout, name)]
    if not ended:
        return
    # Read the requests first: one that is decided meanwhile is then among the decisions.
    waiting = (each.document for each in waiting_requests(layout) if each.kind == NAME)
    decided = ControlTable.of(layout.storage, pipeline.name).refresh().of(NAME)
    documents = (*waiting, *(each.document for each in decided))
    asked = {str(document.get("backfill")) for document in documents}
    for name in ended:
        failpoint("backfill.removing")
        if is_held(layout, name):  # a new backfill has just begun to use it
            continue
        rest = f"/{SCRATCH}" if name in asked else ""
        layout.storage.remove(f"{FOLDER}/{name}{rest}")
