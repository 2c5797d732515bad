"""Pausing a pipeline, through a document that the driver of bronze looks at.

It outlives drivers: a paused pipeline that is started again is still paused.
"""

from __future__ import annotations

from datetime import datetime

from headgate.storage.documents import read_document, write_document
from headgate.storage.layout import Layout

_PATH = Layout.document("pause")


def pause(layout: Layout, now: datetime) -> datetime:
    """Let bronze absorb nothing new. Returns since when that is so: earlier, if it was paused."""
    if (since := paused_since(layout)) is not None:
        return since
    write_document(layout.storage, _PATH, {"since": now.isoformat()})
    return now


def resume(layout: Layout) -> datetime | None:
    """Let bronze go on. Returns since when it was paused; None if it was not."""
    since = paused_since(layout)
    layout.storage.remove(_PATH)
    return since


def paused_since(layout: Layout) -> datetime | None:
    document = read_document(layout.storage, _PATH)
    return None if document is None else datetime.fromisoformat(document["since"])
