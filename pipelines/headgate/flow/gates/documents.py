"""The documents of a gate: why a table is held, and what people request.

A gate has the name of its gold table; the gate of the table's rebuild is ``NAME.rebuild``. Both
respect all releases of the table, which are kept.

The table's log decides: a held table has no commit for the held batches. A document that a crash
has left behind is recognised by its batch id, which the table has already passed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from headgate.declaration.expectations.result import RuleResult
from headgate.declaration.kinds import GOLD
from headgate.declaration.model import Pipeline
from headgate.lake.storage.documents import (
    Document,
    encoded,
    ids_in,
    new_id,
    read_value,
    write_document,
)
from headgate.lake.storage.layout import RELEASES, Layout
from headgate.lake.tables.row_changes import NO_ROWS, RowChanges
from headgate.lake.tables.table import Table

_REBUILD = ".rebuild"
SHOWN = 100
"""The number of rows that are kept to be shown."""


@dataclass(frozen=True)
class ShownRows:
    """The first rows of a held version that break its rules and are not released. ``at`` is the
    time of the hold to which they belong."""

    at: datetime
    changes: RowChanges


@dataclass(frozen=True)
class Hold:
    """A table stays at batch id ``n``, because the version up to ``upto`` breaks the rules of
    ``results``. ``since`` is the time of the first validation that held it, ``at`` that of the
    last. For the rebuild of the table, ``log`` is the folder of the rebuild's log. ``operation`` is
    the last operation that the version has carried out: a replay or a backfill is a version of its
    own at the batch id that the table has reached already. ``generation`` is that of the table:
    after a reset, a batch id may stand for other rows."""

    table: str
    n: int
    upto: int
    since: datetime
    at: datetime
    results: tuple[RuleResult, ...]
    log: str = ""
    operation: int = 0
    generation: int = 0

    @property
    def gate(self) -> str:
        return gate_name(self.table, is_rebuild=bool(self.log))

    @property
    def title(self) -> str:
        """What is held, for a person."""
        return f"the rebuild of {GOLD.path(self.table)}" if self.log else GOLD.path(self.table)

    @property
    def is_of_operation(self) -> bool:
        """Whether a replay, a backfill or a drain holds the table, and no batch."""
        return self.upto == self.n and not self.log

    @property
    def what(self) -> str:
        """What would become visible, for a person."""
        if self.upto == self.n:
            return f"the replay, backfill or drain after batch {self.n:,}"
        first = self.n + 1
        return f"batch {first:,}" if first == self.upto else f"batches {first:,} to {self.upto:,}"

    def release(self, by: str, reason: str, at: datetime) -> Release:
        """A release of exactly this version, and of what breaks its rules."""
        version = self.operation, self.generation
        accepted = tuple(token for result in self.failed for token in result.accepts)
        return Release(self.upto, by, reason, at, self.log, *version, accepted)

    @property
    def failed(self) -> tuple[RuleResult, ...]:
        """The results that hold the table."""
        return tuple(result for result in self.results if result.holds)

    @property
    def why(self) -> str:
        """The rules that hold the table, with the observed values."""
        return "; ".join(map(str, self.failed))


@dataclass(frozen=True)
class Release:
    """The release of a held version by a person: the version up to batch id ``upto`` and
    ``operation`` may become visible. A release with a ``log`` is for the rebuild in this folder, at
    any batch id, because the rebuild follows the current table until it is published. A release of
    the current table is void after a reset, which changes the ``generation``. What is ``accepted``
    (``flow.gates.releases``) is accepted in any version."""

    upto: int
    by: str
    reason: str
    at: datetime
    log: str = ""
    operation: int = 0
    generation: int = 0
    accepted: tuple[str, ...] = ()

    def document(self) -> Document:
        """The release without what it accepts, as commits keep it."""
        return {name: value for name, value in encoded(self).items() if name != "accepted"}


@dataclass(frozen=True)
class Rejection:
    """A person gives up ``operation``, a replay or a backfill that the gate of the gold table
    ``table`` holds, at a ``generation`` of the table."""

    id: str
    table: str
    operation: int
    generation: int
    by: str
    reason: str
    at: datetime


def gate_name(table: str, *, is_rebuild: bool) -> str:
    return f"{table}{_REBUILD}" if is_rebuild else table


def hold_reason(layout: Layout, gate: str) -> Hold | None:
    """Why a gate holds its table, as of its last validation; None if it does not."""
    return read_value(layout.storage, _path(gate, "held"), Hold)


def holds(layout: Layout, pipeline: Pipeline) -> tuple[Hold, ...]:
    """Why gold tables of a pipeline, and rebuilds of them, are held now. Raises HeadgateError if a
    document or a table is damaged."""
    found = (
        hold_reason(layout, gate_name(name, is_rebuild=is_rebuild))
        for name, gold in pipeline.gold.items()
        if gold.suite is not None
        for is_rebuild in (False, True)
    )
    return tuple(hold for hold in found if hold is not None and _is_at(layout, pipeline, hold))


def tables_held(layout: Layout, pipeline: Pipeline) -> dict[str, Hold]:
    """As ``holds``, by the names of the gold tables, without the holds of rebuilds."""
    return {hold.table: hold for hold in holds(layout, pipeline) if not hold.log}


def still_held(layout: Layout, pipeline: Pipeline, asked: Hold) -> bool:
    """Whether a version that was held has not become visible since, alone or together with later
    batches. A rebuild may have followed its table meanwhile. Raises as ``holds``."""
    now, table = hold_reason(layout, asked.gate), _table(layout, pipeline, asked)
    if now is None or now.log != asked.log or not table.exists:
        return False
    state = table.refresh()
    if state.generation != asked.generation:
        return False
    return bool(asked.log) or (state.n, state.operation) < (asked.upto, asked.operation)


def _is_at(layout: Layout, pipeline: Pipeline, hold: Hold) -> bool:
    """Whether the table is still at the position of the hold."""
    table = _table(layout, pipeline, hold)
    if not table.exists:
        return False
    state = table.refresh()
    if (state.n, state.generation) != (hold.n, hold.generation):
        return False
    return hold.upto > hold.n or bool(hold.log) or state.operation < hold.operation


def _table(layout: Layout, pipeline: Pipeline, hold: Hold) -> Table:
    """The table that is held, or its rebuild."""
    path, log = GOLD.path(hold.table), hold.log or None
    return Table(layout.storage, path, pipeline=pipeline.name, log=log)


def hold(layout: Layout, found: Hold, rows: RowChanges = NO_ROWS) -> None:
    """Hold a table. Some ``rows`` that break its rules are kept to be shown."""
    shown = ShownRows(found.at, rows)
    write_document(layout.storage, _path(found.gate, "rows"), encoded(shown))
    write_document(layout.storage, _path(found.gate, "held"), encoded(found))


def shown_rows(layout: Layout, found: Hold) -> RowChanges:
    """The rows that break the rules of a hold; none if another validation is writing others."""
    shown = read_value(layout.storage, _path(found.gate, "rows"), ShownRows)
    return shown.changes if shown is not None and shown.at == found.at else NO_ROWS


def let_go(layout: Layout, gate: str) -> None:
    """Remove the documents of a hold that has ended."""
    for name in ("held", "rows", "retry", "reject"):
        layout.storage.remove(_path(gate, name))


def use_up(layout: Layout, gate: str) -> None:
    """Remove a release that is used up: the table has become visible up to it."""
    layout.storage.remove(_path(gate, "release"))


def released(layout: Layout, gate: str) -> Release | None:
    return read_value(layout.storage, _path(gate, "release"), Release)


def release(layout: Layout, gate: str, given: Release) -> None:
    """Release a held version. What it accepts is kept first, under an id of its own: two people
    may release at once."""
    kept = f"{_kept(gate.removesuffix(_REBUILD))}/{new_id(given.at)}.json"
    write_document(layout.storage, kept, encoded(given))
    write_document(layout.storage, _path(gate, "release"), encoded(given))


class Releases:
    """All releases of a table and of its rebuilds. Each document is read once."""

    def __init__(self, layout: Layout, table: str) -> None:
        self._layout, self._folder = layout, _kept(table)
        self._read: dict[str, Release] = {}

    def all(self) -> tuple[Release, ...]:
        """The oldest first. Raises DamagedDocumentError."""
        for id_ in ids_in(self._layout.storage, self._folder):
            if id_ not in self._read:
                path = f"{self._folder}/{id_}.json"
                if (found := read_value(self._layout.storage, path, Release)) is not None:
                    self._read[id_] = found
        return tuple(self._read[id_] for id_ in sorted(self._read))


def reject(layout: Layout, given: Rejection) -> None:
    """Request that the job of a held table gives up the operation that is held."""
    write_document(layout.storage, _path(given.table, "reject"), encoded(given))


def rejected(layout: Layout, gate: str) -> Rejection | None:
    return read_value(layout.storage, _path(gate, "reject"), Rejection)


def ask_retry(layout: Layout, gate: str, now: datetime) -> None:
    """Request that the running driver, or the next one, validates the held version again at
    once."""
    write_document(layout.storage, _path(gate, "retry"), {"at": now.isoformat()})


def retry_asked(layout: Layout, gate: str) -> bool:
    return layout.storage.exists(_path(gate, "retry"))


def retried(layout: Layout, gate: str) -> None:
    layout.storage.remove(_path(gate, "retry"))


def _kept(table: str) -> str:
    """The folder of a table's releases."""
    return f"{RELEASES}/{table}"


def _path(gate: str, name: str) -> str:
    return Layout.document(f"gates/{gate}.{name}")
