"""Where everything of one pipeline lives under ``<root>/<pipeline>/``."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.storage.files import Storage

CONTROL = "_headgate"
TABLE_FOLDERS = (
    f"{CONTROL}/files",
    "bronze",
    "quarantine",
    "silver",
    "late",
    "gold",
    f"{CONTROL}/publish",
)
"""In the order in which a batch moves through them."""


@dataclass(frozen=True)
class Layout:
    """Relative paths of a pipeline's tables and documents; the storage is the pipeline's."""

    storage: Storage

    @staticmethod
    def of(root: str, pipeline: str) -> Layout:
        return Layout(Storage(f"{root.rstrip('/')}/{pipeline}"))

    @staticmethod
    def bronze(source: str) -> str:
        return f"bronze/{source}"

    @staticmethod
    def quarantine(source: str) -> str:
        return f"quarantine/{source}"

    @staticmethod
    def silver(table: str) -> str:
        return f"silver/{table}"

    @staticmethod
    def gold(table: str) -> str:
        return f"gold/{table}"

    @staticmethod
    def late(table: str) -> str:
        return f"late/{table}"

    @staticmethod
    def files_log(source: str) -> str:
        return f"{CONTROL}/files/{source}"

    @staticmethod
    def published(publication: str) -> str:
        """How far a publication is: a table with commits and no rows."""
        return f"{CONTROL}/publish/{publication}"

    @staticmethod
    def checkpoint(layer: str, epoch: int) -> str:
        """Spark's own checkpoint: disposable, a fresh one for every start of a driver."""
        return f"{CONTROL}/checkpoint/{layer}-{epoch}"

    @staticmethod
    def savepoint(id_: str) -> str:
        return f"{CONTROL}/savepoints/{id_}.json"

    @staticmethod
    def declaration(digest: str) -> str:
        """The text of a declaration, under the digest of what it means."""
        return f"{CONTROL}/declarations/{digest}.json"

    @staticmethod
    def document(name: str) -> str:
        return f"{CONTROL}/{name}.json"
