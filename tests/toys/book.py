"""A toy sink: a table of SQLite that has each row once. Rows and position share a transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from headgate.declaration.contracts.sink import Sink
from headgate.declaration.keys.key import Key
from headgate.declaration.reading.checked import ProblemReport, Section
from headgate.flow.publish.sinks.writers import Outgoing, SinkContext, Writer


@dataclass(frozen=True)
class Book:
    path: str


class BookWriter(Writer):
    """The table ``position`` has for each publication, in ``upto``, the position of its rows."""

    def __init__(self, path: str, name: str) -> None:
        self._path, self._name = path, name

    def send(self, outgoing: Outgoing) -> bool:
        names = ", ".join(f'"{name}"' for name in outgoing.rows.columns)
        places = ", ".join("?" for _ in outgoing.rows.columns)
        rows = [[str(value) for value in row] for row in outgoing.rows.collect()]
        with closing(self._connect()) as book, book:
            book.execute(f'CREATE TABLE IF NOT EXISTS "{self._name}" ({names})')
            moved = book.execute(
                "UPDATE position SET upto = ? WHERE name = ? AND upto = ?",
                (outgoing.upto, self._name, outgoing.after),
            )
            if moved.rowcount != 1:
                raise sqlite3.IntegrityError("another driver was faster")
            book.executemany(f'INSERT INTO "{self._name}" VALUES ({places})', rows)
        return True

    def failure(self, error: Exception) -> str | None:
        return f"{self._path}: {error}" if isinstance(error, sqlite3.Error) else None

    def position(self, held: int) -> int:
        with closing(self._connect()) as book, book:
            found = book.execute(
                "INSERT INTO position VALUES (?, ?) ON CONFLICT (name) "
                "DO UPDATE SET upto = max(upto, excluded.upto) RETURNING upto",
                (self._name, held),
            )
            return int(found.fetchall()[0][0])

    def _connect(self) -> sqlite3.Connection:
        book = sqlite3.connect(self._path)
        book.execute("CREATE TABLE IF NOT EXISTS position (name PRIMARY KEY, upto INTEGER)")
        return book


class BookKind(Sink[Book]):
    key = Key(
        "book",
        "section",
        "A database of SQLite.",
        children=(Key("path", "text", "The file.", required=True, deployment=True),),
    )
    place = "path"
    accepts = "the database is there"
    check_hint = "see whether its folder is there"

    def build(self, section: Section, report: ProblemReport) -> Book | None:
        path = section.text("path")
        return None if path is None else Book(path)

    def plan(self, sink: Book) -> dict[str, Any]:
        return {"path": sink.path}

    def lines(self, planned: Mapping[str, Any]) -> tuple[str, ...]:
        return (f"  book     {planned['path']}",)

    def writer(self, sink: Book, context: SinkContext) -> Writer:
        return BookWriter(sink.path, context.name)


MEMBER = BookKind()
