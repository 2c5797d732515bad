"""Asking a driver to stop, through a document that it looks at."""

from __future__ import annotations

from datetime import UTC, datetime

from headgate.storage.documents import read_document, write_document
from headgate.storage.layout import Layout


def request_stop(layout: Layout) -> None:
    """Ask every running job of the pipeline to end after its current micro-batch."""
    write_document(
        layout.storage, Layout.document("stop"), {"requested": datetime.now(UTC).isoformat()}
    )


def stop_asked(layout: Layout) -> datetime | None:
    """When somebody last asked for it."""
    document = read_document(layout.storage, Layout.document("stop"))
    return None if document is None else datetime.fromisoformat(document["requested"])


def stop_requested(layout: Layout, since: datetime) -> bool:
    """Whether a stop was asked for after ``since``, when the job took its lease."""
    asked = stop_asked(layout)
    return asked is not None and asked > since
