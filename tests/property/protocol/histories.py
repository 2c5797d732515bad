"""The logs of a real lake in the model's terms: the model's invariants hold after each commit.

A record of the source is an event of the model. Its rank among all records that bronze ever had is
its row. The outcome of a record is read from bronze and silver, and has to be the same in every
version. This works only for sources of files whose logs were never trimmed.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import pyarrow.parquet as pq

from headgate.declaration.kinds import BRONZE, FILES, GOLD, LATE, QUARANTINE, SILVER
from headgate.declaration.model import GoldTable, Pipeline
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import DECISIONS, NO_OPERATIONS, RESET, ControlTable
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.record_shape import POSITION_BITS
from headgate.lake.tables.table import Table
from tests.property.protocol.delta import EMPTIED, TABLES, Commit, Rows, World
from tests.property.protocol.entries import Told, told, transaction_faults
from tests.property.protocol.invariants import (
    Violation,
    batches,
    content_faults,
    log_faults,
    operation_faults,
)
from tests.property.protocol.past import awaits, live_files
from tests.property.protocol.scenario import Event, Scenario

Place = tuple[int, int]
_COUNTS = {
    "bronze": ("read", ""),
    "silver": ("silver", "quarantined"),
    "gold": ("folded", "late"),
}


def history_faults(layout: Layout, pipeline: Pipeline) -> list[str]:
    """The first violation in the history of each gold table and of the tables that feed it, as
    text."""
    found: list[str] = []
    for gold in pipeline.gold.values():
        history = History(layout, pipeline, gold)
        for label, violation in history.violations():
            found.append(f"{gold.name}, after {label}: {violation.text}")
            break  # later violations repeat it
    return found


class History:
    """A gold table and the tables that feed it, with every commit that was ever made to them."""

    def __init__(self, layout: Layout, pipeline: Pipeline, gold: GoldTable) -> None:
        self._gold = gold
        source = pipeline.silver[gold.silver].source
        paths = {
            "control": DECISIONS,
            "files": FILES.path(source),
            "bronze": BRONZE.path(source),
            "quarantine": QUARANTINE.path(source),
            "silver": SILVER.path(gold.silver),
            "late": LATE.path(gold.name),
            "gold": GOLD.path(gold.name),
        }
        self.tables = {
            name: Table(layout.storage, path, pipeline=pipeline.name)
            for name, path in paths.items()
        }
        self._source = source
        self._decisions = ControlTable(self.tables["control"].reader()).refresh()
        self._names = {path: name for name, path in paths.items()}
        self._logs = {name: tuple(told(name, table)) for name, table in self.tables.items()}

    @cached_property
    def _files(self) -> dict[str, dict[str, list[dict[str, Any]]]]:
        """The rows of every data file that still exists, by table and path."""
        return {
            name: {
                file.path: _read(self.tables[name], file.path)
                for entry in self._logs[name]
                for file in entry.entry.files
                if self.tables[name].storage.exists(file.path)
            }
            for name in ("bronze", "quarantine", "silver", "late", "gold")
        }

    @cached_property
    def _bronze(self) -> dict[Place, dict[str, Any]]:
        """Every record that bronze ever had, in the order of the source."""
        rows = (row for file in self._files["bronze"].values() for row in file)
        found = {(row["partition"], row["offset"]): row for row in rows}
        return {place: found[place] for place in sorted(found)}

    @cached_property
    def _ranks(self) -> dict[Place, int]:
        return {place: rank for rank, place in enumerate(self._bronze)}

    @cached_property
    def _ends(self) -> list[int]:
        """The number of each record's landing file."""
        return [offset >> POSITION_BITS for _, offset in self._bronze]

    def _end(self, sequence: int) -> int:
        return sum(file <= sequence for file in self._ends)

    @cached_property
    def storage(self) -> tuple[tuple[str, Rows], ...]:
        return tuple(
            (f"{name}/{path}", tuple(self._ranks[place(row)] for row in rows))
            for name in ("bronze", "quarantine", "silver", "late")
            for path, rows in self._files[name].items()
        )

    @cached_property
    def in_order(self) -> tuple[Told, ...]:
        """Every commit except those that created the tables, in the order in which they were
        made."""
        later = (log[1:] for log in self._logs.values())
        return tuple(heapq.merge(*later, key=lambda one: one.at))

    def worlds(self) -> Iterator[tuple[Told, World]]:
        """Each commit, with the world after it."""
        logs = {name: [self._commit(log[0])] for name, log in self._logs.items()}
        for one in self.in_order:
            logs[one.table].append(self._commit(one))
            versions = tuple(tuple(logs[name]) for name in TABLES)
            yield one, World(logs=versions, storage=self.storage)

    def violations(self) -> Iterator[tuple[str, Violation]]:
        pairs: dict[tuple[str, int], int] = {}
        for one, world in self.worlds():
            found = [*self._faults(world), *transaction_faults(self._logs[one.table], one)]
            if one.table == "gold":
                found += self._gold_faults(one, world, pairs)
            yield from ((one.label, violation) for violation in found)

    def _faults(self, world: World) -> Iterator[Violation]:
        """The model's invariants, except for the contents of gold and late: gold's rows do not name
        the rows that they are folded from. See ``_gold_faults``."""
        yield from log_faults(world)
        if not awaits(world, "gold"):
            yield from operation_faults(world)
            silver_awaits = awaits(world, "silver")
            if not silver_awaits and world.head("gold").n > world.head("silver").n:
                yield Violation("damage", "gold is ahead of silver")
        made = (Commit(),)
        above = world._replace(logs=(*world.logs[: TABLES.index("late")], made, made))
        yield from content_faults(self.scenario(len(world.log("silver")) - 1), above)

    def scenario(self, version: int) -> Scenario:
        """The outcome of each record under the declaration that silver has at ``version``."""
        definition = self._logs["silver"][version].entry.state.definition
        silver = self._silver_by_definition.get(definition, frozenset())
        return Scenario(tuple(Event(outcomes=(o,)) for o in self._outcomes(silver)))

    @cached_property
    def _silver_by_definition(self) -> dict[str, frozenset[Place]]:
        found: dict[str, set[Place]] = {}
        for one in self._logs["silver"]:
            rows = found.setdefault(one.entry.state.definition, set())
            for file in one.entry.files:
                rows.update(map(place, self._files["silver"].get(file.path, ())))
        return {definition: frozenset(rows) for definition, rows in found.items()}

    def _outcomes(self, silver: frozenset[Place]) -> Iterator[str]:
        for at, row in self._bronze.items():
            if row["duplicate"]:
                yield "left out"
            elif row["reason"] is not None:
                yield "bad"
            else:
                yield "good" if at in silver else "left out"

    def _gold_faults(
        self, one: Told, world: World, pairs: dict[tuple[str, int], int]
    ) -> Iterator[Violation]:
        """Compares gold's counts with its rows and with the late rows. Versions with the same
        declaration that have processed as many records have to count as many pairs."""
        state = one.entry.state
        total = {key: int(state.total.get(key, 0)) for key in ("pairs", "folded", "late")}
        if total["pairs"] != total["folded"] + total["late"]:
            yield Violation("damage", f"gold counts {total}")
        if awaits(world, "gold") or awaits(world, "late") or awaits(world, "silver"):
            return
        processed = {row for row, batch in batches(world) if batch.n <= state.n}
        rows = world.read(live_files(world.log("late")))
        if total["late"] != (late := sum(row in processed for row in rows)):
            yield Violation("damage", f"gold counts {total}, and {late} rows are late")
        same = pairs.setdefault((state.definition, len(processed)), total["pairs"])
        if same != total["pairs"]:
            yield Violation("damage", f"{len(processed)} records gave {same} pairs, and {total}")
        if (events := self._events(world)) not in (None, total["folded"]):
            yield Violation("damage", f"gold counts {total}, and its rows {events} pairs")

    def _events(self, world: World) -> int | None:
        """How many pairs the rows of gold count. None if no measure counts pairs, or if a vacuum
        has deleted files of that version."""
        counter = self._gold.counter
        live = [path.removeprefix("gold/") for path in live_files(world.log("gold"))]
        files = self._files["gold"]
        if counter is None or any(path not in files for path in live):
            return None
        return sum(int(row[counter]) for path in live for row in files[path])

    def _commit(self, one: Told) -> Commit:
        state, name = one.entry.state, one.table
        mine, aside = _COUNTS.get(name, ("", ""))
        payload = state.payload
        read = payload if isinstance(payload, BronzePayload) else BronzePayload()
        closed = payload.closed_through if isinstance(payload, GoldPayload) else None
        sequence = state.n if name == "files" else read.sequence
        commit = Commit(
            kind=state.kind,
            app=one.transaction is not None,
            epoch=state.epoch,
            generation=state.generation,
            since=state.from_n,
            n=state.n,
            added=self._added(one),
            removed=tuple(f"{name}/{path}" for path in one.entry.removed),
            counts=(int(state.total.get(mine, 0)), int(state.total.get(aside, 0))),
            end=self._end(sequence) if name in ("files", "bronze") else 0,
            closed=-1 if closed is None else closed,
            operation=state.operation,
            origin=_version(state.origin),
        )
        is_decision = (name, state.kind) == ("control", "data")
        return commit._replace(**self._decision(state.n)) if is_decision else commit

    def _decision(self, number: int) -> dict[str, Any]:
        """The fields of a commit of control that the row of its decision has."""
        decision = self._decisions.rows[number - 1]
        if decision.kind == RESET:
            void = ((number, "") for number in decision.document["void"].get(self._source, ()))
            wanted = self._wanted(decision.document)
            return {"kind": "intent", "wanted": wanted, "void": tuple(void)}
        if decision.kind in NO_OPERATIONS:
            return {"kind": decision.kind}
        # An operation of before the source was added has no position.
        at = decision.position.get(self._source)
        return {"kind": "drain", "position": () if at is None else (("", at.n),)}

    def _added(self, one: Told) -> tuple[str, ...]:
        state = one.entry.state
        if one.table != "files":
            return tuple(f"{one.table}/{file.path}" for file in one.entry.files)
        if state.kind != "data":
            return ()
        return tuple(map(str, range(self._end(state.from_n), self._end(state.n))))

    def _wanted(self, said: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
        """Which tables a commit asks to be reset, and to which version of their own logs."""
        targets = ((p, to) for p, to in said.get("tables", {}).items() if p in self._names)
        return tuple(
            (self._names[path], EMPTIED if to["rebuilt"] else _version(to["version"]))
            for path, to in targets
        )


def _version(version: int | None) -> int:
    return EMPTIED if version is None else version


def place(row: Mapping[str, Any]) -> Place:
    """The partition and the offset of a row of any table."""
    prefix = "" if "offset" in row else "_"
    return row[f"{prefix}partition"], row[f"{prefix}offset"]


def _read(table: Table, path: str) -> list[dict[str, Any]]:
    with table.storage.open(path) as source:
        parquet = pq.ParquetFile(source)
        wanted = _wanted_columns(parquet.schema_arrow.names)
        rows: list[dict[str, Any]] = parquet.read(columns=wanted).to_pylist()
        return rows


def _wanted_columns(names: Iterable[str]) -> list[str]:
    """All columns except the contents of records and gold's state."""
    left_out = {"record", "value", "headers", "key", "_state"}
    return [name for name in names if name not in left_out]
