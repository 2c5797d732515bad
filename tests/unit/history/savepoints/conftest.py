"""A small pipeline's tables, written without Spark, to take savepoints of."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from headgate.declaration.load import load
from headgate.history.savepoints.rebuilds import FOLDER, Rebuild, decide_rebuild
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import create_savepoint
from headgate.lake.tables.decisions import Position, position_of
from tests.support.copies import put
from tests.unit.insight.ledger.conftest import DECLARATION, NOON, Lake, bronze, late, silver

NOW = datetime(2026, 5, 4, 13, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two batches in every table."""
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION)
    pipeline = load(file)

    def make(folder: Path) -> None:
        for n in (1, 2):
            add_batch(Lake(folder, pipeline), n)

    put(tmp_path / "lake", "two batches", make)
    return Lake(tmp_path / "lake", pipeline)


def add_batch(lake: Lake, n: int) -> None:
    """Commit batch ``n`` with three records: one quarantined, one late, one folded."""
    first = 3 * n
    rows = [bronze(first, reason="wrong_type"), bronze(first + 1), bronze(first + 2)]
    lake.commit("bronze/events", n, rows, {"read": 3, "duplicate": 0, "differing": 0})
    lake.commit("quarantine/events", n, [{"partition": 0, "offset": first}], {"quarantined": 1})
    counts = {"silver": 2, "filtered": 0, "quarantined": 1, "duplicate": 0}
    lake.commit("silver/good", n, [silver(first + 1), silver(first + 2)], counts)
    lake.commit("late/per_minute", n, [late(first + 1)], {"late": 1})
    rows = [{"window_start": NOON + timedelta(minutes=n), "events": 1}]
    gold = {"pairs": 2, "folded": 1, "late": 1, "final": 1}
    lake.commit("gold/per_minute", n, rows, gold)


def take(lake: Lake, minutes: int = 0) -> Savepoint:
    return create_savepoint(lake.layout, lake.pipeline, NOW + timedelta(minutes=minutes))


def here(lake: Lake) -> Position:
    """The position of the only source now."""
    return position_of({"events": lake.table("bronze/events")})


def begin(lake: Lake, paths: Iterable[str]) -> Rebuild:
    """A rebuild of some tables that has not processed anything yet."""
    generation = lake.control.refresh().generation
    definitions = {path: lake.pipeline.definitions[path] for path in paths}
    rebuild = Rebuild(f"{FOLDER}/7", generation + 1, definitions, "asked for by hand")
    for path, definition in definitions.items():
        schema = pa.schema(lake._tables[path].handle.schema().to_arrow())
        table = rebuild.table(lake.layout, "tiny", path)
        table.create(schema, definition, time_column="time", generation=generation + 1)
    decide_rebuild(lake.control, rebuild, here(lake), NOW)
    return rebuild


@pytest.fixture
def any_counts() -> None:
    """Here commits must state the rows that their files have."""
