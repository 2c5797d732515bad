"""Stages that write small Parquet files with Arrow instead of Spark.

The order of work, the commits and all decisions about them are the engine's own. Each record itself
defines its outcome: see ``Record``.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from headgate.declaration.contracts.operation import Document
from headgate.declaration.kinds import BRONZE, GOLD, LATE, QUARANTINE, SILVER
from headgate.declaration.model import GoldTable, SilverTable, Source
from headgate.flow.gold.fold_stage import FoldStage
from headgate.flow.gold.operators.windows import Windows
from headgate.flow.operations.drain import DrainOperation
from headgate.flow.operations.stage_table import Change, StageTable
from headgate.flow.silver.stage import SilverStage
from headgate.flow.sources.files.log import LoggedFile
from headgate.flow.sources.micro_batches import SourceBatch
from headgate.lake.storage.files import Storage
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.history import files_after
from headgate.lake.tables.log import Commit
from headgate.lake.tables.open_rows import open_rows
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.payloads.silver import SilverPayload
from headgate.lake.tables.record_shape import offset_of
from headgate.lake.tables.staging import Prepared
from headgate.lake.tables.state import State, add_counts, commit_time, time_of
from headgate.lake.tables.table import Table, TableOf
from headgate.lake.tables.table_schema import TableSchema
from tests.support.arrow_tables import NOON, WINDOW, Row, rows_of, shape_of, staged


@dataclass(frozen=True)
class Record:
    """A line of a landing file, which defines its own outcome. ``minute`` is the minute of its
    event time, after noon. A record that ``seals`` makes all windows final that end at or before
    the start of its own."""

    minute: int = 0
    bad: bool = False
    duplicate: bool = False
    filtered: bool = False
    late: bool = False
    seals: bool = False

    def line(self) -> str:
        return json.dumps(asdict(self))


@contextmanager
def without_spark() -> Iterator[None]:
    """Within the block, the jobs of this process use the stages of this module."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("headgate.driver.runtime.BronzeStage", ArrowBronze)
        patched.setattr("headgate.driver.stages.SilverStage", ArrowSilver)
        patched.setattr("headgate.driver.stages.gold_stage_of", ArrowGold)
        patched.setattr(DrainOperation, "change", drain)
        patched.setattr("headgate.flow.sources.files.micro_batches.records_of", arrow_records)
        yield


def arrow_records(landing: Storage, _: object, files: Sequence[LoggedFile]) -> list[Row]:
    return [row for file in files for row in _rows(landing, file)]


def _rows(landing: Storage, file: LoggedFile) -> Iterator[Row]:
    for place, line in enumerate(landing.read(file.path).decode().splitlines()):
        record, offset = Record(**json.loads(line)), offset_of(file.sequence, place)
        at = NOON + timedelta(minutes=record.minute)
        yield {
            "partition": 0,
            "offset": offset,
            "file": file.path,
            "ingested_at": file.seen,
            "event_id": f"e{offset}",
            "event_time": at,
            "clock": at + timedelta(days=1) if record.late else None,
            "duplicate": record.duplicate,
            "reason": "wrong_type" if record.bad else None,
            "passes": not record.filtered,
            "seals": record.seals,
        }


class ArrowBronze:
    """Takes the place of ``BronzeStage``."""

    def __init__(self, _: object, table: Table, source: Source, commit_lock: Any) -> None:
        self.source, self.lock, self.commit_lock = source, threading.RLock(), commit_lock
        self.write_to(table)

    def write_to(self, table: Table) -> None:
        self.fenced, self.table = table, table.reader()

    def refresh(self) -> State:
        self.table.epoch = self.fenced.epoch
        return self.table.refresh()

    def position(self, state: State) -> BronzePayload:
        return BronzePayload.of(state)

    @property
    def shape(self) -> TableSchema:
        return shape_of(self.table)

    def ingest(self, batch: SourceBatch, now: datetime) -> State:
        held, records = self.refresh(), cast(list[Row], batch.records)
        payload = replace(BronzePayload.of(held), offsets=dict(batch.end.offsets))
        counts = {
            "read": len(records),
            "duplicate": sum(row["duplicate"] for row in records),
            "differing": 0,
        }
        state = held.advanced_to(held.n + 1, now, payload)
        files = staged(self.table, state, records)
        batch.verify()
        with self.commit_lock:
            return self.table.commit(state.counting(counts, changed=bool(records)), add=files)


class ArrowSilver(SilverStage):
    def __init__(
        self, _: object, table: TableOf, source: Source, tables: Sequence[SilverTable]
    ) -> None:
        self._declared = {t.name: t for t in tables}
        self.bronze = table(BRONZE.path(source.name)).reader()
        self.quarantine = table(QUARANTINE.path(source.name))
        self.silver = {t.name: table(SILVER.path(t.name)) for t in tables}
        self.rejected = {}

    def _places(self, names: Iterable[str], *, quarantining: bool) -> tuple[StageTable, ...]:
        sides = (self.quarantine,) if quarantining else ()
        return tuple(map(place_of, (*sides, *(self.silver[name] for name in names))))

    def type_of(self, name: str) -> Any:
        return name

    @property
    def shapes(self) -> tuple[TableSchema, ...]:
        return tuple(map(shape_of, (self.quarantine, *self.silver.values())))

    def _prepare_quarantine(self, group: Sequence[Commit], now: datetime) -> Prepared | None:
        held = self.quarantine.refresh()
        state = held.advanced_to(group[-1].state.n, now)
        bronze = rows_of(self.bronze, files_after(group, after=held.n))
        rows = [row for row in bronze if row["reason"] and not row["duplicate"]]
        if not rows:
            return None
        files = staged(self.quarantine, state, rows)
        return Prepared(self.quarantine, state.counting({"quarantined": len(rows)}), files)

    def _prepare_silver(self, name: str, group: Sequence[Commit], now: datetime) -> Prepared | None:
        table, last = self.silver[name], group[-1].state
        held = table.refresh()
        if held.n >= last.n:
            return None
        payload = replace(SilverPayload.of(held), watermark=BronzePayload.of(last).watermark)
        state = held.advanced_to(last.n, now, payload)
        counts = dict.fromkeys(("silver", "filtered", "quarantined", "duplicate"), 0)
        rows = []
        for row in rows_of(self.bronze, files_after(group, after=held.n)):
            outcome = self._outcome(name, row)
            counts[outcome] += 1
            if outcome == "silver":
                rows.append({"_item": 0} | {f"_{key}": value for key, value in row.items()})
        return Prepared(table, state.counting(counts), staged(table, state, rows))

    def _outcome(self, name: str, row: Row) -> str:
        if row["duplicate"]:
            return "duplicate"
        if row["reason"]:
            return "quarantined"
        return "silver" if row["passes"] or not self._declared[name].where else "filtered"


class ArrowGold(FoldStage):
    def __init__(self, _: object, table: TableOf, declared: GoldTable, above: object) -> None:
        self._declared = declared
        self._silver = table(SILVER.path(declared.silver)).reader()
        self.upstream = (self._silver,)
        self.late, self.gold = table(LATE.path(declared.name)), table(GOLD.path(declared.name))
        self.places = place_of(self.late), place_of(self.gold)

    def shapes(self, _: object) -> tuple[TableSchema, ...]:
        return shape_of(self.late), shape_of(self.gold)

    def _prepare_gold(self, held: State, group: Sequence[Commit], now: datetime) -> Prepared:
        last = group[-1].state
        payload = replace(GoldPayload.of(held), watermark=SilverPayload.of(last).watermark)
        state = held.advanced_to(last.n, now, payload)
        opened = open_rows(self.gold)
        pairs = list(self._pairs_of(files_after(group), held))
        folded = [pair for pair in pairs if pair["reason"] is None]
        events = {row["window_start"]: row for row in rows_of(self.gold, opened.files)}
        for pair in folded:
            window = {name: pair[name] for name, _ in WINDOW}
            row = events.setdefault(pair["window_start"], window | {"events": 0})
            row["events"] += 1
        sealed = max((p["window_start"] for p in folded if p["_seals"]), default=NOON)
        final = [row for row in events.values() if row["window_end"] <= sealed]
        opened_rows = [row for row in events.values() if row["window_end"] > sealed]
        files = staged(self.gold, state, opened_rows, final=False)
        files += staged(self.gold, state, final, final=True) if final else ()
        counts = {
            "pairs": len(pairs),
            "folded": len(folded),
            "late": len(pairs) - len(folded),
            "final": len(final),
        }
        state = replace(state, payload=replace(payload, open=len(opened_rows)))
        state = state.counting(counts, changed=bool(folded))
        return Prepared(self.gold, state, files, opened.live)

    def _prepare_late(
        self, held: State, group: Sequence[Commit], now: datetime, _: int
    ) -> Prepared | None:
        late = self.late.refresh()
        state = late.advanced_to(group[-1].state.n, now)
        pairs = self._pairs_of(files_after(group, after=late.n), held)
        rows = [pair for pair in pairs if pair["reason"] is not None]
        if not rows:
            return None
        return Prepared(
            self.late, state.counting({"late": len(rows)}), staged(self.late, state, rows)
        )

    def _pairs_of(self, files: Sequence[DataFile], held: State) -> Iterator[Row]:
        window, closed = self._declared.operator, GoldPayload.of(held).closed_through
        assert isinstance(window, Windows)
        for row in rows_of(self._silver, files):
            first = (row["_event_time"] - NOON) // window.every * window.every + NOON
            for back in range(window.size // window.every):
                start = first - back * window.every
                end = start + window.size
                reason = None
                if row["_clock"] and end + self._declared.allowed_lateness <= row["_clock"]:
                    reason = "late"
                elif closed is not None and end <= time_of(closed):
                    reason = "closed"
                yield row | {"window_start": start, "window_end": end, "reason": reason}


def drain(_: DrainOperation, place: StageTable, state: State, __: Document) -> Change:
    """Takes the place of ``headgate.flow.operations.drain.DrainOperation.change``."""
    opened = open_rows(place.table)
    rows = rows_of(place.table, opened.files)
    files = staged(place.table, state, rows, final=True)
    if rows:
        last = commit_time(max(row["window_end"] for row in rows))
        total = add_counts(state.total, {"final": len(rows)})
        held = GoldPayload.of(state)
        payload = replace(held, closed_through=max(last, held.closed_through or 0), open=0)
        state = replace(state, payload=payload, total=total)
    return Change(state, add=files, remove=opened.live)


def place_of(table: Table) -> StageTable:
    rows: Any = None  # ``drain`` above reads the files itself
    return StageTable(table, rows, shape_of(table).time_column)
