"""Pauses a pipeline with a document that the driver of bronze reads.

The pause does not end with the driver: a paused pipeline that is started again is still paused.
"""

from __future__ import annotations

from datetime import datetime

from headgate.lake.storage.documents import read_document, write_document
from headgate.lake.storage.layout import Layout

_PATH = Layout.document("pause")


def pause(layout: Layout, now: datetime) -> datetime:
    """Pause bronze, so that it reads no new data. Returns the time when the pause began. If
    bronze was paused already, this is before ``now``."""
    if (since := paused_since(layout)) is not None:
        return since
    write_document(layout.storage, _PATH, {"since": now.isoformat()})
    return now


def resume(layout: Layout) -> datetime | None:
    """Let bronze continue. Returns the time when the pause began; None if bronze was not paused."""
    since = paused_since(layout)
    layout.storage.remove(_PATH)
    return since


def paused_since(layout: Layout) -> datetime | None:
    document = read_document(layout.storage, _PATH)
    return None if document is None else datetime.fromisoformat(document["since"])
