"""A small pipeline's tables, every batch all the way down, written without Spark: to be damaged."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.repair.apply import mend
from headgate.repair.examine import SourceHolds, examine
from headgate.repair.plan import Plan
from headgate.savepoints.resets import Resets
from headgate.savepoints.savepoint import Savepoint
from headgate.savepoints.store import create
from headgate.sources.files.log import FILES_LOG, FilesLog
from headgate.storage.files import Storage
from headgate.storage.layout import Layout
from headgate.tables.arrow import stage_arrow
from headgate.tables.history import batches
from headgate.tables.live_files import partition_files
from headgate.tables.record_shape import POSITION_BITS, offset_of
from headgate.tables.snapshot import tables_of
from headgate.tables.table import Table
from tests.support.declared import files_of

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
NOW = datetime(2026, 5, 4, 13, tzinfo=UTC)
TIME = pa.timestamp("us", "UTC")
DECLARATION = """
pipeline: tiny
sources:
  events:
    files: {path: landing, format: json}
    record:
      event_id: [id]
      event_time: {column: at}
      duplicates: {within: 1 hour}
      schema: {id: string, at: timestamp, amount: int}
silver:
  good:
    from: events
  other:
    from: events
gold:
  per_minute:
    from: good
    window: {tumbling: 1 minute}
    measures: {events: count(*)}
    allowed_lateness: 0 seconds
  per_hour:
    from: good
    window: {tumbling: 1 hour}
    measures: {events: count(*)}
    allowed_lateness: 0 seconds
"""
BRONZE, ASIDE = "bronze/events", "quarantine/events"
SILVER = ("silver/good", "silver/other")
GOLD = ("gold/per_minute", "gold/per_hour")
LATE = ("late/per_minute", "late/per_hour")
BUILT = (ASIDE, *SILVER, *LATE, *GOLD)
FILES = "_headgate/files/events"
_ROW = [("partition", pa.int32()), ("offset", pa.int64()), ("time", TIME)]
_COLUMNS: Mapping[str, Sequence[tuple[str, pa.DataType]]] = {
    BRONZE: [*_ROW, ("file", pa.string()), ("ingested_at", TIME)],
    **dict.fromkeys((ASIDE, *SILVER, *LATE), _ROW),
    **{path: [("window_start", TIME), ("events", pa.int64())] for path in GOLD},
}
_TIME_COLUMN = dict.fromkeys(GOLD, "window_start")


@dataclass(frozen=True)
class Batch:
    """Up to bronze batch ``n``; an offset's place is what is left of it by three."""

    n: int
    offsets: list[int]

    def at(self, place: int) -> int:
        return sum(offset % 3 == place for offset in self.offsets)


class Lake:
    """Absorbs landing files, one a batch, as the stages do: of each file's three records one is
    quarantined, one late, one folded. Silver and gold are functions of bronze's rows."""

    def __init__(self, root: Path, pipeline: Pipeline) -> None:
        self.root, self.pipeline = root, pipeline
        self.layout = Layout.of(str(root), pipeline.name)
        self.epoch = 0
        self.open()

    def open(self) -> None:
        """As a driver: a new epoch over all tables."""
        self.log = FilesLog.of(self.layout.storage, "tiny", "events")
        self.log.shape.create(FILES_LOG)
        self.tables = {path: self._made(path) for path in _COLUMNS}
        epochs = (t.refresh().epoch for t in tables_of(self.layout, "tiny"))
        self.epoch = 1 + max((self.epoch, *epochs))
        for table in (*self.tables.values(), self.log.table):
            table.fence(self.epoch)
            table.require_intact()
        self.log.load()

    def _made(self, path: str) -> Table:
        table = Table(self.layout.storage, path, pipeline="tiny")
        parts = [("final", pa.bool_())] if path in GOLD else []
        schema = pa.schema([*_COLUMNS[path], *parts])
        definition = self.pipeline.definitions[path]
        table.create(schema, definition, time_column=_TIME_COLUMN.get(path, "time"))
        return table

    def land(self, count: int) -> None:
        """So many new files; then list as a driver does."""
        folder = Path(files_of(self.pipeline).path)
        folder.mkdir(parents=True, exist_ok=True)
        first = len(list(folder.iterdir())) + 1
        for number in range(first, first + count):
            path = folder / f"{number:03d}.json"
            path.write_text(f"{number}\n")
            seconds = int(NOON.timestamp()) + number
            os.utime(path, ns=(seconds * 10**9,) * 2)
        known = self.log.recorded()
        found = sorted(Storage(str(folder)).list(), key=lambda stat: stat.path)
        self.log.record([stat for stat in found if stat.path not in known], NOW)

    def absorb(self) -> None:
        """Every recorded file that is not read, a batch each."""
        table = self.tables[BRONZE]
        read = table.refresh().offsets.get("sequence", 0)
        for file in self.log.between(read, self.log.last_sequence):
            held = table.refresh()
            offsets = {"sequence": file.sequence}
            state = held.absorbing(held.n + 1, NOW, offsets=offsets)
            rows = []
            if file.status == "recorded":
                more = {"file": file.path, "ingested_at": file.modified}
                rows = [_row(file.sequence, place) | more for place in range(3)]
            self._commit(BRONZE, state, rows, {"read": len(rows)})

    def catch_up(self) -> None:
        self.catch_up_silver()
        for late, gold in zip(LATE, GOLD, strict=True):
            for batch in self._behind("silver/good", gold):
                if batch.n > self.tables[late].refresh().n:
                    self._derive(late, batch, [1], {"late": batch.at(1)})
                self._fold(gold, batch)

    def catch_up_silver(self) -> None:
        for batch in self._behind(BRONZE, ASIDE):
            self._derive(ASIDE, batch, [0], {"quarantined": batch.at(0)})
        for path in SILVER:
            for batch in self._behind(BRONZE, path):
                counts = {"silver": batch.at(1) + batch.at(2), "quarantined": batch.at(0)}
                self._derive(path, batch, [1, 2], counts)

    def carry_out(self) -> None:
        Resets(self.tables[BRONZE]).carry_out(self.tables.values(), NOW)

    def run(self, files: int = 0) -> Lake:
        if files:
            self.land(files)
        self.absorb()
        self.catch_up()
        return self

    def _behind(self, above: str, path: str) -> list[Batch]:
        """What a table has not absorbed."""
        upstream, held = self.tables[above], self.tables[path].refresh()
        found = []
        for batch in batches(upstream, held.n, upstream.refresh().n):
            offsets: list[int] = []
            for file in batch.files:
                with upstream.storage.open(file.path) as source:
                    offsets += pq.read_table(source).column("offset").to_pylist()
            found.append(Batch(batch.state.n, offsets))
        return found

    def _derive(self, path: str, batch: Batch, places: list[int], counts: dict[str, int]) -> None:
        offsets = [o for o in batch.offsets if o % 3 in places]
        rows = [{"partition": 0, "offset": o, "time": NOON} for o in offsets]
        state = self.tables[path].refresh().absorbing(batch.n, NOW)
        self._commit(path, state, rows, counts)

    def _fold(self, path: str, batch: Batch) -> None:
        """One open row, the number of all that were folded; every fifth batch makes that final."""
        table = self.tables[path]
        held = table.refresh()
        opened = partition_files(table.handle, "final", False)
        before = held.total.get("folded", 0)
        folded = [o for o in batch.offsets if o % 3 == 2]
        final = [
            {"window_start": NOON, "events": before + sum(o >> POSITION_BITS <= n for o in folded)}
            for n in range(held.n + 1, batch.n + 1)
            if n % 5 == 0
        ]
        counts = {
            "pairs": len(folded) + batch.at(1),
            "folded": len(folded),
            "late": batch.at(1),
            "final": len(final),
        }
        state = held.absorbing(batch.n, NOW)
        rows = {"true": final, "false": [{"window_start": NOON, "events": before + len(folded)}]}
        staged = [
            replace(file, partition={"final": which})
            for which, content in rows.items()
            for file in self._staged(path, state, content)
        ]
        table.commit(state.counting(counts), staged, opened)

    def _commit(self, path: str, state: Any, rows: list[Any], counts: dict[str, int]) -> None:
        self.tables[path].commit(state.counting(counts), self._staged(path, state, rows))

    def _staged(self, path: str, state: Any, rows: list[Any]) -> Any:
        content = pa.Table.from_pylist(rows, pa.schema(_COLUMNS[path]))
        column = _TIME_COLUMN.get(path, "time")
        return stage_arrow(self.tables[path], state, content, time_column=column)

    def folder(self, path: str) -> Path:
        return Path(self.layout.storage.uri(path))

    def entries(self, path: str) -> list[Path]:
        return sorted(self.folder(path).glob("_delta_log/*.json"))

    def data_files(self, path: str) -> list[Path]:
        """The live ones, in the order in which they were written."""
        handle = DeltaTable(self.layout.storage.uri(path))
        paths = pa.table(handle.get_add_actions()).column("path").to_pylist()
        return sorted(
            (self.folder(path) / p for p in paths), key=lambda p: int(p.parts[-2].split("-")[1])
        )

    def rows(self, path: str) -> list[str]:
        table = DeltaTable(self.layout.storage.uri(path)).to_pyarrow_table()
        return sorted(repr(row) for row in table.to_pylist())

    def all_rows(self) -> dict[str, list[str]]:
        return {path: self.rows(path) for path in _COLUMNS}

    def files(self) -> list[tuple[int, str, int, str]]:
        log = FilesLog.of(self.layout.storage, "tiny", "events")
        log.load()
        return [(f.sequence, f.path, f.size, f.status) for f in log.files]

    def take(self) -> Savepoint:
        return create(self.layout, self.pipeline, NOW)

    def examine(self, scratch: Path, source_holds: SourceHolds = lambda *_: None) -> Plan:
        return examine(self.layout, self.pipeline, scratch, source_holds)

    def mend(self, plan: Plan) -> None:
        """As another process does it."""
        self.epoch += 1
        mend(self.layout, self.pipeline, plan, self.epoch, NOW + timedelta(seconds=self.epoch))


def _row(sequence: int, place: int) -> dict[str, Any]:
    offset = offset_of(sequence, (place - offset_of(sequence)) % 3)
    return {"partition": 0, "offset": offset, "time": NOON}


def lake_in(folder: Path) -> Lake:
    """What there is in a folder, opened by a new driver."""
    return Lake(folder / "lake", load(folder / "tiny.yml"))


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six batches, all the way down; copied for every test."""
    folder = tmp_path_factory.mktemp("prepared")
    (folder / "tiny.yml").write_text(DECLARATION)
    lake_in(folder).run(6)
    return folder


@pytest.fixture
def lake(prepared: Path, tmp_path: Path) -> Lake:
    return lake_in(shutil.copytree(prepared, tmp_path / "here"))
