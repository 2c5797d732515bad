"""Tables for the dashboard, written with Arrow as the stages write them: no Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.flow.sources.files.log import SCHEMA as FILES
from headgate.insight.dashboard.reading.shown import Shown
from headgate.lake.storage.files import Storage
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.arrow import attempt_folder, describe
from headgate.lake.tables.decisions import DECISIONS
from headgate.lake.tables.live_files import partition_files
from headgate.lake.tables.state import add_counts
from headgate.lake.tables.table import Table
from tests.support.any_counts import any_counts
from tests.support.copies import put
from tests.support.decisions import control_of

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
TIME = pa.timestamp("us", "UTC")
DECLARATION = """
pipeline: shop
sources:
  orders:
    files: {path: landing, format: json}
    record:
      event_id: [id]
      event_time: {column: at}
      schema: {id: string, at: timestamp, channel: string, amount: "decimal(10,2)"}
silver:
  clean: {from: orders}
gold:
  sales:
    from: clean
    window: {tumbling: 1 minute}
    by: [channel]
    measures:
      orders: count(*)
      revenue: sum(amount)
      largest: max(amount)
      typical: avg(amount)
    allowed_lateness: 1 minute
"""
MONEY = pa.decimal128(20, 2)
STATUS = [("revision", pa.int32()), ("updated_at", TIME)]
RULES = pa.list_(pa.struct([("id", pa.string()), ("severity", pa.string())]))
SCHEMAS: Mapping[str, list[tuple[str, pa.DataType]]] = {
    "gold/sales": [
        *[("window_start", TIME), ("window_end", TIME), ("channel", pa.string())],
        *[("orders", pa.int64()), ("revenue", MONEY), ("largest", MONEY)],
        *[("typical", pa.float64()), *STATUS],
    ],
    "late/sales": [
        *[("id", pa.string()), ("at", TIME), ("channel", pa.string()), ("amount", MONEY)],
        *[("_event_id", pa.string()), ("_partition", pa.int32()), ("_offset", pa.int64())],
        *[("_item", pa.int32()), ("_clock", TIME), ("_event_time", TIME)],
        *[("window_start", TIME), ("window_end", TIME)],
        *[("late_seconds", pa.float64()), ("reason", pa.string()), ("replayed", pa.int64())],
    ],
    "quarantine/orders": [
        *[("partition", pa.int32()), ("offset", pa.int64()), ("event_id", pa.string())],
        *[("event_time", TIME), ("reason", pa.string()), ("column", pa.string())],
        *[("detail", pa.string()), ("table", pa.string()), ("value", pa.binary())],
        *[("file", pa.string()), ("ingested_at", TIME)],
    ],
    "rejected/clean": [
        *[("partition", pa.int32()), ("offset", pa.int64()), ("item", pa.int32())],
        *[("event_id", pa.string()), ("event_time", TIME), ("rules", RULES)],
        ("suite", pa.string()),
        *[("value", pa.binary()), ("file", pa.string()), ("ingested_at", TIME)],
    ],
    "silver/clean": [("id", pa.string()), ("_event_time", TIME)],
    "bronze/orders": [("event_id", pa.string()), ("event_time", TIME)],
    "_headgate/files/orders": [(field.name, field.type) for field in FILES],
}
TIMES = {
    "gold/sales": "window_start",
    "gold/bought": "event_time",
    "late/sales": "_event_time",
    "quarantine/orders": "ingested_at",
    "rejected/clean": "ingested_at",
    "silver/clean": "_event_time",
    "bronze/orders": "event_time",
    "_headgate/files/orders": "modified",
}
Row = dict[str, Any]


def time_of(path: str) -> str:
    """The column with the times of a table."""
    return TIMES.get(path, "_event_time")


def sale(minute: float, channel: str | None, orders: int, revenue: str, **more: Any) -> Row:
    """A row of gold; ``minute`` counts from noon."""
    start = NOON + timedelta(minutes=minute)
    money = pa.scalar(revenue).cast(MONEY).as_py()
    return {
        "window_start": start,
        "window_end": start + timedelta(minutes=1),
        "channel": channel,
        "orders": orders,
        "revenue": money,
        "largest": money,
        "typical": float(money) / max(orders, 1),
        "revision": 0,
        "updated_at": NOON,
        **more,
    }


def late_sale(minute: float, channel: str, seconds: float, **more: Any) -> Row:
    start = NOON + timedelta(minutes=minute)
    return {
        "id": "e1",
        "at": start,
        "channel": channel,
        "amount": None,
        "_event_id": "e1",
        "_partition": 0,
        "_offset": 7,
        "_item": 0,
        "_clock": start,
        "_event_time": start,
        "window_start": start,
        "window_end": start + timedelta(minutes=1),
        "late_seconds": seconds,
        "reason": "late",
        "replayed": None,
        **more,
    }


def invalid(minute: float, reason: str, value: bytes, **more: Any) -> Row:
    at = NOON + timedelta(minutes=minute)
    return {
        "partition": 0,
        "offset": 3,
        "event_id": "Kim-7",
        "event_time": None,
        "reason": reason,
        "column": None,
        "detail": None,
        "table": None,
        "value": value,
        "file": "a.json",
        "ingested_at": at,
        **more,
    }


@dataclass
class Charted:
    """The pipeline ``shop`` in a folder of its own, with tables under ``lake``. ``schemas`` are
    those of the tables of ``text``, its declaration."""

    folder: Path
    text: str = DECLARATION
    schemas: Mapping[str, list[tuple[str, pa.DataType]]] = field(default_factory=lambda: SCHEMAS)
    pipeline: Pipeline = field(init=False)
    layout: Layout = field(init=False)

    def __post_init__(self) -> None:
        (self.folder / "pipelines").mkdir(parents=True, exist_ok=True)
        self.file.write_text(self.text)
        self.pipeline = load(self.file)
        self.layout = Layout.of(self.root, "shop")
        # Without rules, there is no table of rejected rows.
        has_rules = any(each.suite is not None for each in self.pipeline.silver.values())
        paths = (path for path in self.schemas if has_rules or not path.startswith("rejected/"))
        self._tables = {path: self._created(path) for path in paths}
        if not self.layout.storage.exists(DECISIONS):
            put(Path(self.layout.storage.root), ("shop", DECISIONS), _create_control)

    @property
    def file(self) -> Path:
        return self.folder / "pipelines/shop.yml"

    @property
    def root(self) -> str:
        return str(self.folder / "lake")

    def shown(self) -> Shown:
        return Shown.of(self.pipeline, self.root)

    def board(self, text: str, name: str = "board") -> Path:
        (self.folder / "dashboards").mkdir(exist_ok=True)
        file = self.folder / f"dashboards/{name}.yml"
        file.write_text(text)
        return file

    def sell(self, open_: Sequence[Row] = (), final: Sequence[Row] = (), **counts: int) -> None:
        """Commit a batch of gold: open rows replace the previous open rows, final rows are
        added."""
        table = self._tables["gold/sales"]
        state = self._next(table, {"folded": 1, "pairs": 1, "final": len(final), **counts})
        before = partition_files(table.handle, "final", False)
        folder = attempt_folder(state)
        for rows, is_final in ((open_, False), (final, True)):
            if rows:
                part = f"{folder}/final={str(is_final).lower()}/part-0.parquet"
                table.storage.write(part, self._encoded("gold/sales", rows))
        files = describe(table.storage, folder, "window_start")
        with any_counts():
            table.commit(replace(state, changed_at=state.at), files, before)

    def add(self, path: str, rows: Sequence[Row], **counts: int) -> None:
        """Commit a batch of another table."""
        table = self._tables[path]
        state = self._next(table, counts)
        folder = attempt_folder(state)
        if rows:
            table.storage.write(f"{folder}/part-0.parquet", self._encoded(path, rows))
        with any_counts():
            table.commit(state, describe(table.storage, folder, time_of(path)))

    def _next(self, table: Table, counts: Mapping[str, int]) -> Any:
        held = table.refresh()
        at = int(datetime.now(UTC).timestamp() * 1e6)
        state = replace(held, kind="data", from_n=held.n, n=held.n + 1, at=at, batch=dict(counts))
        return replace(state, total=add_counts(held.total, counts))

    def _encoded(self, path: str, rows: Sequence[Row]) -> bytes:
        sink = pa.BufferOutputStream()
        content = pa.Table.from_pylist(list(rows), pa.schema(self.schemas[path]))
        pq.write_table(content, sink, write_page_checksum=True)
        return bytes(sink.getvalue().to_pybytes())

    def _created(self, path: str) -> Table:
        table = Table(self.layout.storage, path, pipeline="shop")
        parts = [("final", pa.bool_())] if path.startswith("gold/") else []
        names = [*self.schemas[path]]
        if parts:  # before the other columns of the status, as gold has them
            names[-2:-2] = parts
        definition = self.pipeline.definitions.get(path, "digest")

        def create(folder: Path) -> None:
            new = Table(Storage(str(folder)), path, pipeline="shop")
            new.create(pa.schema(names), definition, time_column=time_of(path))

        if not table.exists:
            put(Path(self.layout.storage.root), ("shop", path, definition), create)
        return table


def rejected_row(minute: float, *rules: str) -> Row:
    return {
        "partition": 0,
        "offset": int(minute),
        "item": 0,
        "event_id": "Kim-7",
        "event_time": None,
        "rules": [{"id": rule, "severity": "critical"} for rule in rules],
        "suite": "clean",
        "value": b'{"id": "Kim-7"}',
        "file": "a.json",
        "ingested_at": NOON + timedelta(minutes=minute),
    }


def _create_control(folder: Path) -> None:
    control_of(Storage(str(folder)), "shop")
