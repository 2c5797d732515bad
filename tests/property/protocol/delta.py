"""A Delta table as delta-rs commits to it, and its storage: the base of the protocol.

A table is its log. A handle is a version. A commit on a handle is refused if any newer commit
carries the same app id; the versions of app transactions are not compared. Version 0 creates the
table. All other fields of a commit are the table's state, in its metadata.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.property.protocol.tables import KINDS, ONE, kind_of, source_of, tables_of

Rows = tuple[int, ...]
Drains = tuple[tuple[int, int], ...]
Position = tuple[tuple[str, int], ...]
Void = tuple[tuple[int, str], ...]
Versions = tuple[tuple[str, int], ...]

EMPTIED = -1
"""The version to which a table is reset that is rebuilt from the beginning."""


class Commit(NamedTuple):
    """One commit and the state of the table after it."""

    # create | data | fence | operation | reset | maintenance, and of control: drain | intent |
    # rebuild | publication
    kind: str = "create"
    app: bool = False  # carries the table's app transaction
    epoch: int = 0
    generation: int = 0  # rises with every reset
    since: int = 0  # a data commit processed the bronze batches (since, n]
    n: int = 0  # control: the number of the last decision
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    counts: tuple[int, int] = (0, 0)  # of the table and of its side table, cumulative
    end: int = 0  # bronze: the source position it ends at; files log: files recorded
    definition: int = 0  # bronze: the declaration of its last batch
    closed: int = -1  # gold: windows up to this one were closed by an operation
    operation: int = 0  # gold: the number of the last operation that it carried out
    origin: int = EMPTIED  # reset: the version that was restored; control: that of the savepoint
    position: Position = ()  # drain: for each source that it touches, the n of bronze before it
    wanted: Versions = ()  # intent, rebuild, publication: its tables, each with its target version
    void: Void = ()  # intent: all operations that are not in force after it, by source

    def without_data(self, kind: str, epoch: int, *, copy_forward: bool = True) -> Commit:
        """A commit of ``kind`` after this one: the same state, no files."""
        state = self if copy_forward else Commit()
        return state._replace(
            kind=kind,
            app=True,
            epoch=epoch,
            since=state.n,
            added=(),
            removed=(),
            origin=EMPTIED,
            position=(),
            wanted=(),
            void=(),
        )


Log = tuple[Commit, ...]
TABLES = tables_of(ONE, ("control", *KINDS))


class World(NamedTuple):
    """All that remains after a process has ended: tables, data files, the lease's counter,
    savepoints."""

    tables: tuple[str, ...] = TABLES
    logs: tuple[Log, ...] = ((Commit(),),) * len(TABLES)
    storage: tuple[tuple[str, Rows], ...] = ()
    epoch: int = 0
    savepoints: tuple[Versions, ...] = ()
    checkpoint: int = 0  # only the mutant without CHECKPOINT_IN_BRONZE reads it

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(source_of(table) for table in self.tables if kind_of(table) == "bronze")

    def log(self, table: str) -> Log:
        return self.logs[self.tables.index(table)]

    def head(self, table: str) -> Commit:
        return self.log(table)[-1]

    def commit(self, table: str, handle: int, commit: Commit) -> World | None:
        """The world with ``commit``, or None if the commit is refused."""
        log = self.log(table)
        if commit.app and any(newer.app for newer in log[handle + 1 :]):
            return None
        logs = list(self.logs)
        logs[self.tables.index(table)] = (*log, commit)
        return self._replace(logs=tuple(logs))

    def write(self, path: str, rows: Rows) -> World:
        """Write a data file. As in an object store, it overwrites a file of the same name."""
        others = [file for file in self.storage if file[0] != path]
        return self._replace(storage=tuple(sorted([*others, (path, rows)])))

    def delete(self, paths: tuple[str, ...]) -> World:
        return self._replace(storage=tuple(f for f in self.storage if f[0] not in paths))

    def read(self, paths: tuple[str, ...]) -> Rows:
        """Raises KeyError if a file is missing."""
        storage = dict(self.storage)
        return tuple(row for path in paths for row in storage[path])
