"""Operations: rare changes to tables outside the flow of batches, each carried out exactly once.

A durable intent with a rising number comes first; every table it touches commits under that
number; a retry passes over tables that have it. An open intent is finished before any batch.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from headgate.failpoints import failpoint
from headgate.gold.closing import close_windows
from headgate.jobs.medallion import Medallion
from headgate.storage.documents import read_document, write_document
from headgate.storage.layout import Layout

INTENT = Layout.document("intent")
Clock = Callable[[], datetime]


def close_all_windows(layout: Layout, medallion: Medallion, clock: Clock) -> None:
    """Make every open gold row final. All tables must stand at the same n."""
    if not medallion.gold:
        return
    last = max(g.gold.refresh().operation for g in medallion.gold.values())
    intent = {"operation": last + 1, "kind": "close_windows", "at": clock().isoformat()}
    write_document(layout.storage, INTENT, intent)
    failpoint("operation.intended")
    finish_open_operation(layout, medallion, clock)


def finish_open_operation(layout: Layout, medallion: Medallion, clock: Clock) -> None:
    """Carry out what an intent says that has not been carried out yet."""
    intent = read_document(layout.storage, INTENT)
    if intent is None or "gold" not in medallion.layers:
        return
    for gold in medallion.gold.values():
        close_windows(gold, int(intent["operation"]), clock())
        failpoint("operation.table_done")
    layout.storage.remove(INTENT)
