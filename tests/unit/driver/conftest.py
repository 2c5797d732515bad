"""The tables of a pipeline with two gold tables, without stages and without Spark."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from headgate.declaration.graph import graph_of
from headgate.declaration.load import load
from headgate.driver.damaged_tables import DamagedTables
from headgate.lake.control.ownership import LAYERS
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table
from tests.support.decisions import control_of

DECLARATION = """
pipeline: p
sources:
  b:
    files: {path: landing, format: json}
    record: {event_id: [id], event_time: {column: at}, schema: {id: string, at: timestamp}}
silver: {s: {from: b}}
gold:
  one:
    from: s
    window: {tumbling: 1 minute}
    measures: {events: count(*)}
    allowed_lateness: 0 seconds
  two:
    from: s
    window: {tumbling: 1 minute}
    measures: {events: count(*)}
    allowed_lateness: 0 seconds
"""
SCHEMA = pa.schema([("time", pa.timestamp("us", "UTC")), ("final", pa.bool_())])


@dataclass
class Tables:
    """``runtime`` has the tables of a PipelineRuntime and no stages; ``refreshed`` counts the
    refreshes of tables by path."""

    layout: Layout
    runtime: Any
    refreshed: Counter[str]

    def commit(self, path: str, **changes: Any) -> State:
        """Commit like another job, with its own view of the table."""
        table = Table(self.layout.storage, path, pipeline="p")
        return table.commit(replace(table.refresh(), **changes))


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tables:
    layout = Layout.of(str(tmp_path), "p")

    def table(path: str) -> Table:
        made = Table(layout.storage, path, pipeline="p")
        made.create(SCHEMA, "digest", time_column="time")
        return made

    made = {path: table(path) for path in ("bronze/b", "silver/s", "gold/one", "gold/two")}
    pipeline = load(tmp_path / "p.yml", text=DECLARATION)
    runtime = SimpleNamespace(
        pipeline=pipeline,
        graph=graph_of(pipeline),
        control=control_of(layout.storage, "p"),
        bronze={"b": SimpleNamespace(table=made["bronze/b"], lock=threading.RLock())},
        table=made.__getitem__,
        newest=made.__getitem__,
        held={},
        damaged=DamagedTables(pipeline, LAYERS),
        reread=frozenset(),
        undecidable=frozenset(),
    )
    refreshed: Counter[str] = Counter()
    refresh = Table.refresh

    def counted(table: Table) -> State:
        refreshed[table.name] += 1
        return refresh(table)

    monkeypatch.setattr(Table, "refresh", counted)
    return Tables(layout, runtime, refreshed)
