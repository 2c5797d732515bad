"""Resets: a table gets the files of another version: an earlier version of its own, a version of
its rebuild, or no files.

The intent is one commit on bronze, so it is fenced and ordered among the batches. Each table in the
intent awaits the reset while its generation is lower than the intent's, and carries it out in one
commit of its own. After a crash, the next driver that owns the table finishes the reset. No Spark
is needed (docs/exactly-once.md).

Tables that are no longer declared keep their rows. If their upstream table is reset, the batches
that they have processed are no longer those of the upstream table, and they must not continue from
their position when they are declared again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from deltalake import DeltaTable, Schema
from deltalake.exceptions import TableNotFoundError

from headgate.commands import SEE_DAMAGE
from headgate.declaration.contracts.operation import operation_named
from headgate.declaration.kinds import BRONZE, GOLD, LATE, SILVER, kind_of
from headgate.declaration.model import Pipeline
from headgate.failpoints import failpoint
from headgate.lake.storage.documents import Document, decoded, encoded
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.checksum import NO_FILES, digest_of
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.extending import extend, extends
from headgate.lake.tables.history import lineage, with_footers
from headgate.lake.tables.live_files import live_files, live_paths
from headgate.lake.tables.log import list_log, read_commit
from headgate.lake.tables.payloads.bronze import BronzePayload, Operation
from headgate.lake.tables.snapshot import ConsistentSnapshot, tables_of
from headgate.lake.tables.state import State, commit_time
from headgate.lake.tables.table import Table


@dataclass(frozen=True)
class ResetTarget:
    """What a table gets: the files and the state of the log version ``version``, whose live files
    have the digest ``files``. Without a ``version`` the table is emptied. ``rebuilt`` is the folder
    of the log if it is that of a rebuild. With ``keep`` a table keeps its rows but loses its
    position and definition: it is rebuilt if it is declared again."""

    version: int | None = None
    files: str = NO_FILES
    keep: bool = False
    rebuilt: str | None = None


@dataclass(frozen=True)
class ResetIntent:
    """``why`` is a message. ``savepoint`` is the id of the restored savepoint, if there is one.
    ``reread`` says whether bronze itself is reset."""

    generation: int
    tables: Mapping[str, ResetTarget]
    why: str
    at: datetime
    savepoint: str | None = None
    reread: bool = False

    def document(self) -> Document:
        """Without the generation, which the state has."""
        return {key: value for key, value in encoded(self).items() if key != "generation"}

    @property
    def is_publication(self) -> bool:
        """Whether tables get their rebuilds and none goes back to an earlier version."""
        return any(target.rebuilt for target in self.tables.values())

    def asks(self, path: str, generation: int) -> ResetTarget | None:
        """The target of a table at ``generation``; None if it has no reset to carry out."""
        return self.tables.get(path) if generation < self.generation else None

    @staticmethod
    def of(state: State) -> ResetIntent:
        """The intent in the state of a reset commit of bronze."""
        content = BronzePayload.of(state).reset or {}
        return decoded({**content, "generation": state.generation}, ResetIntent)


class Resets:
    """The last intent of a pipeline, read from its bronze table."""

    def __init__(self, bronze: Table) -> None:
        self.bronze = bronze
        self._read: tuple[int, ResetIntent | None] = 0, None

    @property
    def intent(self) -> ResetIntent | None:
        """None if no table was ever reset, or all resets are known to be done."""
        version = BronzePayload.of(self.bronze.refresh()).reset_commit
        if version != self._read[0]:
            self._read = version, self._intent_at(version)
        return self._read[1]

    def _intent_at(self, version: int) -> ResetIntent | None:
        try:
            commit = read_commit(self.bronze.storage, version)
        except LogGapError:
            # Maintenance may remove an intent when every table has carried it out.
            if list_log(self.bronze.storage).is_trimmed(version):
                return None
            raise
        return ResetIntent.of(commit.state) if commit else None

    def awaits(self, table: Table) -> bool:
        """Whether a reset of a table is requested and not done. Nothing may build on the table."""
        return self.awaits_at(table.name, table.refresh().generation)

    def awaits_at(self, path: str, generation: int) -> bool:
        """As ``awaits``, for a table at a given generation."""
        intent = self._open_at(generation) if is_built(path) else None
        return intent is not None and intent.asks(path, generation) is not None

    def _open_at(self, generation: int) -> ResetIntent | None:
        """The intent if it may be open at a generation. A finished one is not read: its entry may
        be damaged."""
        return self.intent if generation < self.bronze.refresh().generation else None

    def carry_out(self, tables: Iterable[Table], now: datetime) -> None:
        """Reset the fenced tables that are in the intent and not reset yet.

        Raises LogGapError if a requested version is damaged, CommitRefusedError, FencedError.
        """
        seen = {table: table.refresh().generation for table in tables if is_built(table.name)}
        # Read the intent once for all tables, so that a newer intent applies to none of them yet.
        # Otherwise silver could be reset without the quarantine whose rows it has counted.
        intent = self._open_at(min(seen.values())) if seen else None
        for table, generation in seen.items():
            if intent and (target := intent.asks(table.name, generation)):
                reset_table(table, target, intent.generation, now)
                failpoint("reset.table_done")


def tables_awaiting_reset(at: ConsistentSnapshot) -> tuple[str, ...]:
    """The tables of a snapshot that await a reset."""
    resets = Resets(at.head.table)
    return tuple(p for p, s in at.tables.items() if resets.awaits_at(p, s.state.generation))


def last_reset_reason(at: ConsistentSnapshot) -> str:
    """The reason of the last reset of a snapshot's tables."""
    intent = Resets(at.head.table).intent
    return intent.why if intent else "it has been completed meanwhile"


def is_built(path: str) -> bool:
    """Whether a table is built from bronze."""
    return kind_of(path).is_built


def intend_reset(
    bronze: Table,
    tables: Mapping[str, ResetTarget],
    now: datetime,
    *,
    why: str,
    savepoint: str | None = None,
    reread: ResetTarget | None = None,
    above: int = 0,
    asked: Collection[Operation] | None = None,
) -> ResetIntent:
    """Request the reset of some tables. ``reread`` resets bronze itself in the same commit. The new
    generation is also higher than ``above``. ``asked`` are bronze's operations at the savepoint:
    bronze has them again as they were then, and later operations may be taken back.

    After this commit, the reset will be carried out, by this process or a later one.
    """
    if reread is not None:
        _extend_first(bronze, reread, now)
    held = bronze.refresh()
    generation = max(held.generation, above) + 1
    intent = ResetIntent(generation, tables, why, now, savepoint, reread is not None)
    version = bronze.version
    back = _Back(replace(held.held("reset", bronze.epoch), origin=version))
    if reread is not None:
        back = _back(bronze, held, reread)
    held = back.state
    payload = replace(BronzePayload.of(held), reset=intent.document(), reset_commit=version + 1)
    if savepoint is not None and asked is not None:
        payload = replace(payload, operations=_as_of(savepoint, asked, payload.operations))
    state = replace(held, payload=payload, generation=intent.generation, at=commit_time(now))
    bronze.commit(state, back.add, back.remove, back.schema)
    failpoint("reset.intended")
    return intent


def _as_of(
    savepoint: str, asked: Collection[Operation], now: Iterable[Operation]
) -> tuple[Operation, ...]:
    # The restore of an earlier savepoint may have taken back an operation of this one since.
    then = {each.number: each for each in asked}
    return tuple(
        then.get(each.number)
        or replace(each, document=operation_named(each.name).taken_back(each.document, savepoint))
        for each in now
    )


def reset_table(table: Table, target: ResetTarget, generation: int, now: datetime) -> State:
    """Give a table the files and the position of a target, in one commit with a new generation.

    Raises LogGapError if the version's files do not have the target's digest.
    """
    _extend_first(table, target, now)
    back = _back(table, table.refresh(), target)
    state = replace(back.state, generation=generation, at=commit_time(now))
    return table.commit(state, back.add, back.remove, back.schema)


@dataclass(frozen=True)
class _Back:
    """A commit that resets a table. ``schema`` is the new schema if it changes."""

    state: State
    add: tuple[DataFile, ...] = ()
    remove: tuple[DataFile, ...] = ()
    schema: Schema | None = None


def _back(table: Table, held: State, target: ResetTarget) -> _Back:
    if target.keep:
        return _Back(State(held.payload.emptied(), kind="reset", origin=table.version))
    now = {file.path: file for file in live_files(table.handle)}
    if target.version is None:
        state = State(
            held.payload.emptied(),
            kind="reset",
            definition=held.definition,
            changed_at=held.changed_at,
        )
        return _Back(state, remove=tuple(now.values()))
    source = table.with_log(target.rebuilt) if target.rebuilt else table
    try:
        there = DeltaTable(source.log.uri(), version=target.version)
    except TableNotFoundError as error:
        raise LogGapError(
            f"{source.log.uri()}: the log of this rebuild is gone",
            remedy=f"see what is damaged: {SEE_DAMAGE}",
        ) from error
    then = {file.path: file for file in live_files(there)}
    if digest_of(then.values()) != target.files:
        raise LogGapError(
            f"{source.log.uri()}: version {target.version} no longer lists the files it recorded",
            remedy=f"see what is damaged: {SEE_DAMAGE}",
        )
    state = next(lineage(source, target.version)).state
    payload = state.payload.carried()
    state = replace(state, payload=payload, kind="reset", batch={}, origin=target.version)
    if target.rebuilt:
        # The log of the rebuild is removed later, so this commit replaces its whole history.
        then = {f.path: f for f in with_footers(source, target.version, then.values())}
        # Its rows are new only for batches that the table had not processed.
        changed_at = held.changed_at if held.n >= state.n else state.changed_at
        state = replace(state, origin=None, data_commit=table.version + 1, changed_at=changed_at)
    added = tuple(file for path, file in then.items() if path not in now)
    removed = tuple(file for path, file in now.items() if path not in then)
    if there.schema() == table.handle.schema():
        return _Back(state, added, removed)
    if len(added) == len(then):
        return _Back(state, added, tuple(now.values()), there.schema())
    # A new schema would remove the files that stay, so fields that were added since stay, too.
    return _Back(state, added, removed)


def _extend_first(table: Table, target: ResetTarget, now: datetime) -> None:
    """Give a table the fields that a target has, before the commit that brings back its files: if
    some files stay, that commit cannot change columns."""
    if target.version is None or target.rebuilt:
        return
    table.refresh()
    there = DeltaTable(table.log.uri(), version=target.version)
    schema, held = there.schema(), table.handle.schema()
    if schema != held and extends(schema, held) and live_paths(there) & live_paths(table.handle):
        extend(table, schema, table.state.definition, now)


def undeclared_tables(layout: Layout, pipeline: Pipeline) -> tuple[Table, ...]:
    """The existing undeclared tables of a pipeline that were built from bronze."""
    declared = pipeline.definitions
    found = tables_of(layout, pipeline.name)
    return tuple(t for t in found if is_built(t.name) and t.name not in declared)


def undeclared_targets(undeclared: Iterable[str], reset: Collection[str]) -> dict[str, ResetTarget]:
    """The targets of undeclared tables downstream of the tables in ``reset``: they lose their
    definitions, so that they are rebuilt if they are declared again. All are paths."""
    kinds = {kind_of(path) for path in reset}
    if BRONZE in kinds:
        return {path: ResetTarget(keep=True) for path in undeclared}
    if SILVER not in kinds:
        return {}
    below = (path for path in undeclared if kind_of(path) in (GOLD, LATE))
    return {path: ResetTarget(keep=True) for path in below}
