"""Which copy of a pipeline a folder has. The logs of a copy have the ids of those of the original,
so sinks could not tell the two apart."""

from __future__ import annotations

from datetime import UTC, datetime

from headgate.storage.documents import new_id, read_document, write_document
from headgate.storage.files import Storage
from headgate.storage.layout import Layout

_DOCUMENT = Layout.document("copy")


def mark_copy(storage: Storage) -> None:
    """Give a copy an id of its own. It keeps the one that it has."""
    if not copy_id(storage):
        write_document(storage, _DOCUMENT, {"id": new_id(datetime.now(UTC))})


def copy_id(storage: Storage) -> str:
    """The id of the copy that a pipeline's folder has; empty for an original."""
    document = read_document(storage, _DOCUMENT)
    return "" if document is None else str(document["id"])
