"""The id of a copied pipeline. The logs of a copy have the same ids as those of the original, so
sinks need this id to distinguish the two."""

from __future__ import annotations

from datetime import UTC, datetime

from headgate.lake.storage.documents import new_id, read_document, write_document
from headgate.lake.storage.files import Storage
from headgate.lake.storage.layout import Layout

_DOCUMENT = Layout.document("copy")


def mark_copy(storage: Storage) -> None:
    """Give a copy an id, unless it has one already."""
    if not copy_id(storage):
        write_document(storage, _DOCUMENT, {"id": new_id(datetime.now(UTC))})


def copy_id(storage: Storage) -> str:
    """The id of the copy in a pipeline's folder; empty for an original."""
    document = read_document(storage, _DOCUMENT)
    return "" if document is None else str(document["id"])
