"""Resets: a table gets the files of another version: an earlier version of its own, a version of
its rebuild, or no files.

A reset is a decision that names all tables that go back together. A table awaits the reset while
its generation is lower than that of the decision, and carries it out in one commit of its own.
Until then, nothing else reads or writes the table. After a crash, the next driver that owns the
table finishes the reset. No Spark is needed (docs/exactly-once.md).

Tables that are no longer declared keep their rows. If their upstream table is reset, the batches
that they have processed are no longer those of the upstream table, and they must not continue from
their position when they are declared again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from deltalake import DeltaTable, Schema
from deltalake.exceptions import TableNotFoundError

from headgate.commands import SEE_DAMAGE
from headgate.declaration.contracts.operation import operation_named
from headgate.declaration.kinds import BRONZE, GOLD, INPUTS, KINDS, LATE, SILVER, kind_of
from headgate.declaration.model import Pipeline
from headgate.failpoints import failpoint
from headgate.lake.storage.documents import decoded, encoded
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.checksum import NO_FILES, digest_of
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.decisions import (
    REPLAY,
    RESET,
    ControlTable,
    Decision,
    Decisions,
    Position,
    Void,
    void_with,
)
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.extending import extend, extends
from headgate.lake.tables.history import lineage, with_footers
from headgate.lake.tables.live_files import live_files, live_paths
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
class BatchIdentity:
    """A batch of bronze. After bronze has gone back, other batches get the same batch ids, so the
    generation of bronze at the batch belongs to its identity."""

    generation: int
    n: int


@dataclass(frozen=True)
class ResetIntent:
    """The document of a reset. ``generation`` is that of the tables after it. ``why`` is a message.
    ``savepoint`` is the id of the restored savepoint, if there is one, and ``decision`` the number
    of the last decision before it. ``back_to`` has the last
    batch of each bronze table that is reset, by the name of its source; None for one that is
    rebuilt from the beginning. ``void`` are all operations that are not in force after it."""

    generation: int
    tables: Mapping[str, ResetTarget]
    why: str
    savepoint: str | None = None
    decision: int | None = None
    back_to: Mapping[str, BatchIdentity | None] = field(default_factory=dict)
    void: Void = field(default_factory=dict)

    @property
    def is_publication(self) -> bool:
        """Whether tables get their rebuilds and none goes back to an earlier version."""
        return any(target.rebuilt for target in self.tables.values())

    def asks(self, path: str, generation: int) -> ResetTarget | None:
        """The target of a table at ``generation``; None if it has no reset to carry out."""
        return self.tables.get(path) if generation < self.generation else None

    @staticmethod
    def of(decision: Decision) -> ResetIntent:
        return decoded(decision.document, ResetIntent)


def reset_intents(decisions: Decisions) -> dict[str, ResetIntent]:
    """The newest reset that names a table, by the path of the table. It may be older than the
    newest reset: that one may concern other tables, and another table may still await this one."""
    found: dict[str, ResetIntent] = {}
    for decision in decisions.of(RESET):
        intent = ResetIntent.of(decision)
        found |= dict.fromkeys(intent.tables, intent)
    return found


class Resets:
    """The resets of a pipeline, read from its control table. ``control`` is a reader of this object
    alone."""

    def __init__(self, control: ControlTable) -> None:
        self._control = control
        self._generation = 0
        self._intents: dict[str, ResetIntent] = {}

    @property
    def generation(self) -> int:
        """The generation of the last reset, as of now."""
        return self._control.refresh().generation

    def after(self, generation: int) -> tuple[ResetIntent, ...]:
        """The resets with a higher generation, in order."""
        found = map(ResetIntent.of, self._control.refresh().of(RESET))
        return tuple(intent for intent in found if intent.generation > generation)

    def awaits(self, table: Table) -> bool:
        """Whether a reset of a table is decided and not done. Nothing may build on the table."""
        return self.awaits_at(table.name, table.refresh().generation)

    def awaits_at(self, path: str, generation: int) -> bool:
        """As ``awaits``, for a table at a given generation."""
        intent = self._refreshed().get(path)
        return intent is not None and intent.asks(path, generation) is not None

    def carry_out(self, tables: Iterable[Table], now: datetime) -> None:
        """Reset the fenced tables that await a reset, bronze first.

        Raises LogGapError if a requested version is damaged, CommitRefusedError, FencedError.
        """
        # Read the intents once for all tables, so that a newer one applies to none of them yet.
        # Otherwise silver could be reset without the quarantine whose rows it has counted.
        intents = self._refreshed()
        numbers = {
            decision.document["generation"]: decision.number
            for decision in self._control.known.of(RESET)
        }
        for table in sorted(tables, key=lambda each: KINDS.index(kind_of(each.name))):
            intent = intents.get(table.name)
            if intent and (target := intent.asks(table.name, table.refresh().generation)):
                generation = intent.generation
                reset_table(table, target, generation, now, last=numbers[generation])
                failpoint("reset.table_done")

    def _refreshed(self) -> dict[str, ResetIntent]:
        decisions = self._control.refresh()
        if decisions.generation != self._generation:
            self._generation, self._intents = decisions.generation, reset_intents(decisions)
        return self._intents


def tables_awaiting_reset(at: ConsistentSnapshot) -> tuple[str, ...]:
    """The tables of a snapshot that await a reset."""
    intents = reset_intents(at.decisions)
    return tuple(
        path
        for path, position in at.tables.items()
        if path in intents and intents[path].asks(path, position.state.generation) is not None
    )


def last_reset_reason(at: ConsistentSnapshot) -> str:
    """The reason of the last reset of a snapshot's tables."""
    reset = at.decisions.reset
    return str(reset.document["why"]) if reset else "it has been completed meanwhile"


def is_built(path: str) -> bool:
    """Whether a table is built from bronze."""
    return kind_of(path).is_built


def decide_reset(
    control: ControlTable,
    tables: Mapping[str, ResetTarget],
    position: Position,
    now: datetime,
    *,
    why: str,
    void: Void,
    savepoint: str | None = None,
    decision: int | None = None,
    back_to: Mapping[str, BatchIdentity | None] | None = None,
    above: int = 0,
) -> ResetIntent:
    """Decide on the reset of some tables. The new generation is also higher than ``above``. After
    this commit, the reset will be carried out, by this process or a later one. The others as in
    ``ResetIntent``. Raises CommitRefusedError, FencedError."""
    generation = max(control.refresh().generation, above) + 1
    intent = ResetIntent(generation, tables, why, savepoint, decision, back_to or {}, void)
    control.append(RESET, encoded(intent), position, now, generation=generation)
    failpoint("reset.intended")
    return intent


def void_after_restore(
    decisions: Decisions,
    saved: int,
    sources: Iterable[str],
    back_to: Mapping[str, BatchIdentity | None],
) -> Void:
    """The decisions that are not in force after the restore of a savepoint whose last decision was
    number ``saved``. ``back_to`` is as in ``ResetIntent``.

    A decision of before is in force again if it was at the savepoint. A later one stays in force,
    unless bronze goes back or its kind is taken back: the stages carry it out again.
    """
    before = decisions.until(saved).void
    later = [each for each in decisions.placed if each.number > saved]
    void = {
        source: sorted(
            {number for number in before.get(source, ()) if number <= saved}
            | {
                each.number
                for each in later
                if source in back_to
                or not decisions.is_in_force(each.number, source)
                or (each.kind != REPLAY and operation_named(each.kind).is_taken_back)
            }
        )
        for source in sources
    }
    return void_with({**decisions.void, **void}, _lost(decisions, back_to))


def void_after_loss(decisions: Decisions, back_to: Mapping[str, BatchIdentity | None]) -> Void:
    """The decisions that are not in force after bronze has lost its batches after those of
    ``back_to`` (``ResetIntent``)."""
    return void_with(decisions.void, _lost(decisions, back_to))


def _lost(
    decisions: Decisions, back_to: Mapping[str, BatchIdentity | None]
) -> Mapping[str, Sequence[int]]:
    """The decisions at later batches than those of ``back_to``. A replay is the batch after its
    position."""
    return {
        source: [
            each.number
            for each in decisions.placed
            if source in each.position
            and (end is None or each.position[source].n + (each.kind == REPLAY) > end.n)
        ]
        for source, end in back_to.items()
    }


def is_of_lineage(decisions: Decisions, source: str, batch: BatchIdentity) -> bool:
    """Whether the bronze table of a source still has a batch, and all batches before it. If not, a
    savepoint that ends there can only be restored together with bronze, or be copied.

    The lineage of bronze begins at its present generation. Before that, it has the batches of an
    earlier generation up to the batch that the reset has gone back to, and so on.
    """
    ends = {
        intent.generation: intent.back_to[source]
        for intent in map(ResetIntent.of, decisions.of(RESET))
        if source in intent.back_to
    }
    wanted, generation, most = batch.generation, max(ends, default=0), batch.n
    while (end := ends.get(wanted)) is not None and end.n >= batch.n:
        wanted = end.generation  # bronze had the batch already, and went back to it
    while generation != wanted:
        if (end := ends.get(generation)) is None:
            return False
        generation, most = end.generation, min(most, end.n)
    return batch.n <= most


def reset_table(
    table: Table,
    target: ResetTarget,
    generation: int,
    now: datetime,
    *,
    last: int | None = None,
) -> State:
    """Give a table the files and the position of a target, in one commit with a new generation.
    ``last`` is the number of the decision on the reset. A table whose operation has a higher number
    has carried it out before the decisions were lost: later ones get the same numbers.

    Raises LogGapError if the version's files do not have the target's digest.
    """
    _extend_first(table, target, now)
    back = _back(table, table.refresh(), target)
    state = replace(back.state, generation=generation, at=commit_time(now))
    if last is not None:
        state = replace(state, operation=min(state.operation, last))
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
        # An input log has no rows to keep.
        return {path: ResetTarget(keep=kind_of(path) != INPUTS) for path in undeclared}
    if SILVER not in kinds:
        return {}
    below = (path for path in undeclared if kind_of(path) in (GOLD, LATE))
    return {path: ResetTarget(keep=True) for path in below}
