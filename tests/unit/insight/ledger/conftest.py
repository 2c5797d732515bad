"""A small pipeline's tables, written without Spark: what a balanced lake looks like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.flow.sources.files.log import SCHEMA as FILES
from headgate.lake.storage.files import Storage
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.arrow import stage_arrow
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.decisions import DECISIONS
from headgate.lake.tables.state import add_counts
from headgate.lake.tables.table import Table
from tests.support.copies import put
from tests.support.decisions import control_of

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
    where: amount > 0
gold:
  per_minute:
    from: good
    window: {tumbling: 1 minute}
    measures: {events: count(*)}
    allowed_lateness: 0 seconds
"""

TIME = pa.timestamp("us", "UTC")
SCHEMAS: Mapping[str, list[tuple[str, pa.DataType]]] = {
    "bronze/events": [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("event_id", pa.string()),
        ("duplicate", pa.bool_()),
        ("reason", pa.string()),
        ("time", TIME),
    ],
    "quarantine/events": [("partition", pa.int32()), ("offset", pa.int64()), ("time", TIME)],
    "silver/good": [
        ("_partition", pa.int32()),
        ("_offset", pa.int64()),
        ("_item", pa.int32()),
        ("_event_id", pa.string()),
        ("time", TIME),
    ],
    "late/per_minute": [
        ("_partition", pa.int32()),
        ("_offset", pa.int64()),
        ("_item", pa.int32()),
        ("_event_id", pa.string()),
        ("window_start", TIME),
        ("replayed", pa.int64()),
        ("time", TIME),
    ],
    "gold/per_minute": [("window_start", TIME), ("events", pa.int64()), ("time", TIME)],
    "_headgate/files/events": [*((field.name, field.type) for field in FILES), ("time", TIME)],
}
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)

Rows = list[dict[str, Any]]


class Lake:
    """Commits rows and counts to the tables of the tiny pipeline, as the stages do. ``schemas`` are
    those of its tables."""

    def __init__(
        self,
        root: Path,
        pipeline: Pipeline,
        schemas: Mapping[str, list[tuple[str, pa.DataType]]] = SCHEMAS,
    ) -> None:
        self.pipeline, self._schemas = pipeline, schemas
        self.layout = Layout.of(str(root), pipeline.name)
        self._tables = {p: Table(self.layout.storage, p, pipeline="tiny") for p in schemas}
        for path, table in self._tables.items():
            if not table.exists:
                self._create(path)
        put(Path(self.layout.storage.root), DECISIONS, _create_control)
        self.control = control_of(self.layout.storage, "tiny")

    def _create(self, path: str) -> None:
        parts = ["final"] if path.startswith("gold/") else []
        schema = pa.schema([*self._schemas[path], *((p, pa.bool_()) for p in parts)])
        definition = self.pipeline.definitions.get(path, "digest")

        def create(folder: Path) -> None:
            table = Table(Storage(str(folder)), path, pipeline="tiny")
            table.create(schema, definition, time_column="time")

        put(Path(self.layout.storage.root), (path, definition), create)

    def table(self, path: str) -> Table:
        return self._tables[path]

    def commit(self, path: str, n: int, rows: Rows, counts: Mapping[str, int]) -> None:
        """Commit batch ``n`` of a table: its rows, and their counts."""
        table = self._tables[path]
        held = table.refresh()
        state = replace(held, kind="data", from_n=held.n, n=n, at=1, batch=dict(counts))
        state = replace(state, total=add_counts(held.total, counts))
        content = pa.Table.from_pylist([{"time": NOON, **row} for row in rows], self._schema(path))
        staged = stage_arrow(table, state, content, time_column="time")
        table.commit(state, add=tuple(self._placed(path, f) for f in staged))

    def _schema(self, path: str) -> pa.Schema:
        return pa.schema(self._schemas[path])

    def _placed(self, path: str, file: DataFile) -> DataFile:
        return replace(file, partition={"final": "true"}) if path.startswith("gold/") else file


def _create_control(folder: Path) -> None:
    control_of(Storage(str(folder)), "tiny")


def bronze(offset: int, *, duplicate: bool = False, reason: str | None = None) -> dict[str, Any]:
    row = {"partition": 0, "offset": offset, "event_id": f"e{offset}"}
    return {**row, "duplicate": duplicate, "reason": reason}


def silver(offset: int) -> dict[str, Any]:
    return {"_partition": 0, "_offset": offset, "_item": 0, "_event_id": f"e{offset}"}


def late(offset: int) -> dict[str, Any]:
    return {**silver(offset), "window_start": NOON}


@pytest.fixture
def empty_lake(tmp_path: Path) -> Lake:
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION)
    return Lake(tmp_path / "lake", load(file))


@pytest.fixture
def lake(empty_lake: Lake) -> Lake:
    """Batch 1 in every table: 6 read = 1 duplicate + 1 quarantined + 1 filtered + 3 silver, of
    which 1 is late. Batch 2 is in bronze only."""
    fill(empty_lake)
    return empty_lake


def fill(empty: Lake, **wrong: Any) -> None:
    """Give an empty lake the batches of ``lake``, or a variant of them with something wrong."""
    pipeline = empty.pipeline
    key = (pipeline.name, repr(pipeline.definitions), repr(wrong))
    root = Path(empty.layout.storage.root).parent
    put(root, key, lambda folder: _commit_batches(Lake(folder, pipeline), **wrong))


def _commit_batches(
    lake: Lake,
    *,
    silver_rows: tuple[int, ...] = (3, 4, 5),
    quarantine_rows: tuple[int, ...] = (1,),
    late_rows: tuple[int, ...] = (5,),
    counted: int = 2,
    silver_counts: Mapping[str, int] | None = None,
) -> None:
    first = [bronze(0), bronze(1, reason="wrong_type"), bronze(2, duplicate=True)]
    rows = [*first, bronze(3), bronze(4), bronze(5)]
    size = {"read_bytes": 600, "duplicate_bytes": 100, "quarantined_bytes": 50}
    lake.commit("bronze/events", 1, rows, {"read": 6, "duplicate": 1, "differing": 0, **size})
    second = {"read": 1, "duplicate": 0, "differing": 0, "corrected": 1}
    lake.commit("bronze/events", 2, [bronze(6)], second)
    bad = [{"partition": 0, "offset": o} for o in quarantine_rows]
    lake.commit("quarantine/events", 1, bad, {"quarantined": len(bad)})
    counts = {"silver": 3, "filtered": 1, "quarantined": 1, "duplicate": 1}
    good = [silver(o) for o in silver_rows]
    lake.commit("silver/good", 1, good, silver_counts or counts)
    lake.commit("late/per_minute", 1, [late(o) for o in late_rows], {"late": len(late_rows)})
    gold = {"pairs": 3, "folded": 2, "late": 1, "final": 1}
    lake.commit("gold/per_minute", 1, [{"window_start": NOON, "events": counted}], gold)
