"""Dead letters: rows that a sink finally refuses, each a document below the pipeline's folder."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from headgate.commands import pipeline_command
from headgate.declaration.model import Pipeline
from headgate.lake.storage.documents import encoded, ids_in, read_value, write_document
from headgate.lake.storage.files import Storage
from headgate.lake.storage.layout import CONTROL, Layout

MOST = 10_000
"""The maximum number of dead letters of one publication: a receiver that refuses everything must
not fill the disk. At the limit, the publication waits until a person resends or discards some."""


@dataclass(frozen=True)
class Letter:
    """A row as it was sent. ``id`` is its ``headgate-id``, ``headers`` are those of the row;
    ``why`` is the reason of the last refusal, after ``attempts`` attempts."""

    id: str
    body: bytes
    headers: Mapping[str, str]
    why: str
    attempts: int
    at: datetime


def dead_letters(declared: Pipeline, layout: Layout) -> dict[str, int]:
    """The number of dead letters of each publication."""
    return {name: DeadLetters(layout.storage, name).count for name in declared.publish}


class DeadLetters:
    """The dead letters of one publication. ``storage`` is the folder of its pipeline."""

    def __init__(self, storage: Storage, name: str) -> None:
        self._storage, self._name = storage, name
        self._folder = f"{CONTROL}/dead_letters/{name}"
        self._count: int | None = None
        self._lock = threading.Lock()

    def keep(self, letter: Letter) -> str | None:
        """Store a letter; it replaces a letter with the same id. Returns why it cannot be stored;
        None if it is stored. May be called from several threads."""
        with self._lock:
            return self._keep(letter)

    def _keep(self, letter: Letter) -> str | None:
        path = self._path(letter.id)
        try:
            is_new = not self._storage.exists(path)
            if is_new and self._is_full():
                again = pipeline_command("publication resend", self._name)
                return f"refuses rows, and there are {MOST:,} dead letters already; {again}"
            write_document(self._storage, path, encoded(letter))
        except OSError as error:
            return f"refuses a row, and the dead letter cannot be written: {error.strerror}"
        if is_new and self._count is not None:
            self._count += 1
        return None

    def _is_full(self) -> bool:
        if self._count is None or self._count >= MOST:
            # A person may have removed some in the meantime.
            self._count = self.count
        return self._count >= MOST

    def ids(self, begin: str = "") -> list[str]:
        """The ids that start with ``begin``. Letters are not read, so the ids of damaged ones are
        included."""
        return [id_ for id_ in ids_in(self._storage, self._folder) if id_.startswith(begin)]

    def all(self, begin: str = "") -> Iterator[Letter]:
        """The letters whose ids start with ``begin``. Raises DamagedDocumentError."""
        for id_ in self.ids(begin):
            if (letter := read_value(self._storage, self._path(id_), Letter)) is not None:
                yield letter

    @property
    def count(self) -> int:
        return len(self.ids())

    def remove(self, id_: str) -> None:
        self._storage.remove(self._path(id_))

    def _path(self, id_: str) -> str:
        return f"{self._folder}/{id_}.json"
