"""Where everything of one pipeline lives under ``<root>/<pipeline>/``."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.storage.files import Storage

CONTROL = "_headgate"


@dataclass(frozen=True)
class Layout:
    """Relative paths of a pipeline's documents; the storage is the pipeline's. Paths of tables:
    ``declaration.kinds``."""

    storage: Storage

    @staticmethod
    def of(root: str, pipeline: str) -> Layout:
        return Layout(Storage(f"{root.rstrip('/')}/{pipeline}"))

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
