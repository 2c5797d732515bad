"""The folders of backfills, below the pipeline's own folder.

The folder of a backfill has its scratch tables while it runs. Its patches are kept as long as
bronze's commits, or a waiting request, contain the operation that uses them.
"""

from __future__ import annotations

from headgate.declaration.model import Pipeline
from headgate.failpoints import failpoint
from headgate.operations.backfill import NAME
from headgate.operations.requests import waiting
from headgate.savepoints.holds import FOLDER, is_held
from headgate.storage.layout import Layout
from headgate.tables.payloads.bronze import BronzePayload
from headgate.tables.snapshot import head_table

SCRATCH = "scratch"


def remove_left(layout: Layout, pipeline: Pipeline) -> None:
    """Remove the files of backfills that have ended or were killed, except patches that an
    operation uses."""
    ended = [name for name in layout.storage.folders(FOLDER) if not is_held(layout, name)]
    if not ended:
        return
    # Read the requests first: one that bronze processes meanwhile is then among the operations.
    asked = {str(r.document.get("backfill")) for r in waiting(layout) if r.name == NAME}
    bronze = head_table(layout, pipeline)
    operations = BronzePayload.of(bronze.refresh()).operations
    asked |= {str(o.document.get("backfill")) for o in operations if o.name == NAME}
    for name in ended:
        failpoint("backfill.removing")
        rest = f"/{SCRATCH}" if name in asked else ""
        layout.storage.remove(f"{FOLDER}/{name}{rest}")
