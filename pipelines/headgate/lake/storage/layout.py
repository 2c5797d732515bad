"""Where the files of one pipeline are under ``<root>/<pipeline>/``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from headgate.lake.storage.documents import new_id, read_document, write_document
from headgate.lake.storage.files import Storage

CONTROL = "_headgate"
RELEASES = f"{CONTROL}/releases"
"""The folder of what people have released, in a folder for each gold table."""


@dataclass(frozen=True)
class Layout:
    """Relative paths of a pipeline's documents. ``storage`` is the pipeline's folder. For the paths
    of tables see ``declaration.kinds``."""

    storage: Storage

    @staticmethod
    def of(root: str, pipeline: str) -> Layout:
        return Layout(Storage(f"{root.rstrip('/')}/{pipeline}"))

    @staticmethod
    def checkpoint(layer: str, epoch: int) -> str:
        """Spark's own checkpoint. It is disposable: every start of a driver uses a new one."""
        return f"{CONTROL}/checkpoint/{layer}-{epoch}"

    @staticmethod
    def savepoint(id_: str) -> str:
        return f"{CONTROL}/savepoints/{id_}.json"

    @staticmethod
    def declaration(digest: str) -> str:
        """The document with the text of a declaration. ``digest`` is the digest of its meaning."""
        return f"{CONTROL}/declarations/{digest}.json"

    @staticmethod
    def document(name: str) -> str:
        return f"{CONTROL}/{name}.json"


_DOCUMENT = Layout.document("copy")


def mark_copy(storage: Storage) -> None:
    """Give a copy an id, unless it has one already."""
    if not copy_id(storage):
        write_document(storage, _DOCUMENT, {"id": new_id(datetime.now(UTC))})


def copy_id(storage: Storage) -> str:
    """The id of the copy in a pipeline's folder; empty for an original."""
    document = read_document(storage, _DOCUMENT)
    return "" if document is None else str(document["id"])
