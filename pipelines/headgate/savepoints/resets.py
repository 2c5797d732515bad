"""Resets: tables that are given the files of another version: an earlier one of their own, that of
a rebuild, or none.

The intent is one commit on bronze, so it is fenced and has its place among the batches. Every
table that it names has it to do while its generation is lower than the intent's, and does it in
one commit of its own; whoever owns the table next finishes what a crash left open. No Spark is
needed for any of this (docs/exactly-once.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from typing import Any

from deltalake import DeltaTable, Schema
from deltalake.exceptions import TableNotFoundError

from headgate.commands import SEE_DAMAGE
from headgate.declaration.kinds import kind_of
from headgate.failpoints import failpoint
from headgate.tables.checksum import NO_FILES, digest_of
from headgate.tables.data_file import DataFile
from headgate.tables.errors import LogGapError
from headgate.tables.history import lineage, with_footers
from headgate.tables.live_files import live_files
from headgate.tables.log import read_commit
from headgate.tables.log_folder import log_folder
from headgate.tables.snapshot import ConsistentSnapshot
from headgate.tables.state import State, commit_time
from headgate.tables.table import Table


@dataclass(frozen=True)
class Target:
    """What a table is given: the files and the state of the log version ``version``, whose live
    files have the digest ``files``; None empties it. ``rebuilt`` is the folder of the log where
    that is not the table's own, but that of its rebuild. ``keep`` leaves a table its rows and takes
    away its place: it is of no declaration any more, and has absorbed nothing."""

    version: int | None = None
    files: str = NO_FILES
    keep: bool = False
    rebuilt: str | None = None

    @staticmethod
    def of(content: Mapping[str, Any]) -> Target:
        """What a commit says. Earlier versions said more of a table that is emptied: it is then of
        the declaration that it was made from, and an upgrade rebuilds it."""
        known = {field.name for field in fields(Target)}
        return Target(**{key: value for key, value in content.items() if key in known})


@dataclass(frozen=True)
class Intent:
    """``why`` in words; ``savepoint`` is the id of the one that is restored, if one is; ``reread``
    says whether bronze itself went back."""

    generation: int
    tables: Mapping[str, Target]
    why: str
    at: datetime
    savepoint: str | None = None
    reread: bool = False

    def document(self) -> dict[str, Any]:
        return {
            "tables": {path: asdict(target) for path, target in self.tables.items()},
            "why": self.why,
            "at": self.at.isoformat(),
            "savepoint": self.savepoint,
            "reread": self.reread,
        }

    @property
    def is_publication(self) -> bool:
        """Whether tables get their rebuilds, and none goes back."""
        return any(target.rebuilt for target in self.tables.values())

    def asks(self, path: str, generation: int) -> Target | None:
        """What a table that stands at ``generation`` has still to do."""
        return self.tables.get(path) if generation < self.generation else None

    @staticmethod
    def of(state: State) -> Intent:
        """The intent that a reset commit of bronze says."""
        content = state.reset or {}
        return Intent(
            generation=state.generation,
            tables={path: Target.of(target) for path, target in content["tables"].items()},
            why=content["why"],
            at=datetime.fromisoformat(content["at"]),
            savepoint=content["savepoint"],
            reread=content["reread"],
        )


class Resets:
    """The last intent of a pipeline, as its bronze table tells it."""

    def __init__(self, bronze: Table) -> None:
        self.bronze = bronze
        self._read: tuple[int, Intent | None] = 0, None

    @property
    def intent(self) -> Intent | None:
        """None if no table was ever reset, or all that were are known to be done."""
        version = self.bronze.refresh().reset_commit
        if version != self._read[0]:
            self._read = version, self._intent_at(version)
        return self._read[1]

    def _intent_at(self, version: int) -> Intent | None:
        try:
            commit = read_commit(self.bronze.storage, version)
        except LogGapError:
            # Maintenance lets go of an intent when every table has done what it asks for.
            if log_folder(self.bronze.storage).is_trimmed(version):
                return None
            raise
        return Intent.of(commit.state) if commit else None

    def awaits(self, table: Table) -> bool:
        """Whether a reset of a table is asked for and not done: nothing may build on it."""
        return self.awaits_at(table.name, table.refresh().generation)

    def awaits_at(self, path: str, generation: int) -> bool:
        """As ``awaits``, of a table that was seen at a generation."""
        intent = self._open_at(generation) if is_built(path) else None
        return intent is not None and intent.asks(path, generation) is not None

    def _open_at(self, generation: int) -> Intent | None:
        """What everybody has carried out need not be read, and may be damaged."""
        return self.intent if generation < self.bronze.refresh().generation else None

    def carry_out(self, tables: Iterable[Table], now: datetime) -> None:
        """Reset those of some fenced tables that the intent names and that are not done.

        Raises LogGapError if a version that is asked for is damaged, CommitRefusedError,
        FencedError.
        """
        seen = {table: table.refresh().generation for table in tables if is_built(table.name)}
        # One look for all: of an intent that comes in between, none of them is done. Otherwise
        # silver would go back, and the quarantine that its counts speak of would not.
        intent = self._open_at(min(seen.values())) if seen else None
        for table, generation in seen.items():
            if intent and (target := intent.asks(table.name, generation)):
                reset(table, target, intent.generation, now)
                failpoint("reset.table_done")


def awaiting(at: ConsistentSnapshot) -> tuple[str, ...]:
    """The tables of a cut that await a reset."""
    resets = Resets(at.bronze.table)
    return tuple(p for p, s in at.tables.items() if resets.awaits_at(p, s.state.generation))


def why(at: ConsistentSnapshot) -> str:
    """What the last reset of a cut's tables is for."""
    intent = Resets(at.bronze.table).intent
    return intent.why if intent else "it is done meanwhile"


def is_built(path: str) -> bool:
    """Whether a table is built from bronze."""
    return kind_of(path).is_built


def intend(
    bronze: Table,
    tables: Mapping[str, Target],
    now: datetime,
    *,
    why: str,
    savepoint: str | None = None,
    reread: Target | None = None,
    above: int = 0,
) -> Intent:
    """Ask for some tables to be reset; ``reread`` takes bronze itself back, in the same commit.
    The new generation is higher than ``above``, too.

    From this commit on it will be done, by this process or the next.
    """
    held = bronze.refresh()
    generation = max(held.generation, above) + 1
    intent = Intent(generation, tables, why, now, savepoint, reread is not None)
    version = bronze.handle.version()
    back = _Back(replace(held.held("reset", bronze.epoch), origin=version))
    if reread is not None:
        back = _back(bronze, held, reread)
    state = replace(
        back.state,
        generation=intent.generation,
        reset=intent.document(),
        reset_commit=version + 1,
        at=commit_time(now),
    )
    bronze.commit(state, back.add, back.remove, back.schema)
    failpoint("reset.intended")
    return intent


def reset(table: Table, target: Target, generation: int, now: datetime) -> State:
    """Give a table the files and the position that it had, in one commit under a new generation.

    Raises LogGapError if the version's files are not those that the target has the digest of.
    """
    back = _back(table, table.refresh(), target)
    state = replace(back.state, generation=generation, at=commit_time(now))
    return table.commit(state, back.add, back.remove, back.schema)


@dataclass(frozen=True)
class _Back:
    """A commit that takes a table back; ``schema`` is given where it changes with that."""

    state: State
    add: tuple[DataFile, ...] = ()
    remove: tuple[DataFile, ...] = ()
    schema: Schema | None = None


def _back(table: Table, held: State, target: Target) -> _Back:
    if target.keep:
        return _Back(State(kind="reset", origin=table.handle.version()))
    now = {file.path: file for file in live_files(table.handle)}
    if target.version is None:
        state = State(kind="reset", definition=held.definition, changed_at=held.changed_at)
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
    state = replace(state, kind="reset", batch={}, reset=None, origin=target.version)
    if target.rebuilt:
        # The log of the rebuild goes: this commit stands for all of it.
        then = {f.path: f for f in with_footers(source, target.version, then.values())}
        # What it brings is new only where the table had not absorbed it.
        changed_at = held.changed_at if held.n >= state.n else state.changed_at
        state = replace(
            state, origin=None, data_commit=table.handle.version() + 1, changed_at=changed_at
        )
    if (schema := _changed(table, there.schema())) is not None:
        return _Back(state, tuple(then.values()), tuple(now.values()), schema)
    added = tuple(file for path, file in then.items() if path not in now)
    removed = tuple(file for path, file in now.items() if path not in then)
    return _Back(state, added, removed)


def _changed(table: Table, schema: Schema) -> Schema | None:
    return None if schema.to_json() == table.handle.schema().to_json() else schema
