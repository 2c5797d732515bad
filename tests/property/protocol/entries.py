"""The entries of real logs, in the order in which they were committed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from headgate.lake.tables.log import Commit as Entry
from headgate.lake.tables.log import entry_path, read_commit
from headgate.lake.tables.table import Table
from tests.property.protocol.delta import TABLES
from tests.property.protocol.invariants import Violation


@dataclass(frozen=True)
class Told:
    """An entry of a log. ``at``: its place in the order of all entries. ``transaction``: the
    version of the table's app transaction. ``operation``: the version of the app transaction for
    operations."""

    table: str
    entry: Entry
    at: int
    transaction: int | None
    operation: int | None

    @property
    def label(self) -> str:
        state = self.entry.state
        return f"{self.table} {self.entry.version} ({state.kind}, n={state.n})"


def told(name: str, table: Table) -> Iterator[Told]:
    """The entries of a table's log, from version 0 on."""
    version, at, generation = 0, 0, 0
    while table.log.exists(entry_path(version)):
        lines = table.log.read(entry_path(version)).splitlines()
        actions = [json.loads(line) for line in lines if line.strip()]
        info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
        said = {a["txn"]["appId"]: a["txn"]["version"] for a in actions if "txn" in a}
        entry = read_commit(table.log, version)
        assert entry is not None, f"{table.name}: {version} was not made by Headgate"
        # A process reads the clock before it commits, and begins its next step after that commit.
        # An operation is decided after bronze's commit, a reset before it.
        is_operation = name == "control" and entry.state.generation == generation
        place = TABLES.index("bronze") if is_operation else TABLES.index(name)
        at = max(at, 2 * (int(info["timestamp"]) * len(TABLES) + place) + is_operation)
        generation = entry.state.generation
        yield Told(name, entry, at, said.get(table.app), said.get(f"{table.app}/op"))
        version += 1
    assert version, f"{table.name}: its log does not begin with version 0"


def transaction_faults(log: tuple[Told, ...], one: Told) -> Iterator[Violation]:
    """Every commit carries the table's app transaction. Its version never falls, even if n
    falls."""
    before = log[one.entry.version - 1].transaction
    if one.transaction is None:
        yield Violation("zombie", "it has no transaction: nobody can be refused behind it")
    elif before is not None and one.transaction < before:
        yield Violation("zombie", f"its transaction {one.transaction} comes after {before}")
    state = one.entry.state
    if one.operation != (state.operation if state.kind == "operation" else None):
        yield Violation("damage", f"its transaction of operations is {one.operation}")
