"""A small pipeline's tables, with many batches, to be maintained without Spark."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from headgate.declaration.load import load
from headgate.driver.lease import highest_table_epoch
from headgate.history.maintenance.compaction import CompactionLimits
from headgate.history.maintenance.report import Compacted, Vacuumed
from headgate.history.maintenance.steps import compact_tables, vacuum_tables
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.snapshot import tables_of
from headgate.lake.tables.table import Table
from tests.support.copies import put
from tests.unit.history.savepoints.conftest import add_batch
from tests.unit.insight.ledger.conftest import DECLARATION, SCHEMAS, Lake

AT_ONCE = CompactionLimits(least=2)
TOMORROW = timedelta(days=1, hours=1)
BUILT = ("quarantine/events", "silver/good", "late/per_minute", "gold/per_minute")

Fill = Callable[[int], Lake]


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Returns a folder with a lake of this many batches. It is created once, and tests copy it."""

    @cache
    def made(batches: int) -> Path:
        folder = tmp_path_factory.mktemp(f"lake{batches}-")
        lake = lake_in(folder)
        for n in range(1, batches + 1):
            add_batch(lake, n)
        return folder

    return made


@pytest.fixture
def fill(prepared: Callable[[int], Path], tmp_path: Path) -> Fill:
    """A lake with this many batches in every table."""

    def made(batches: int) -> Lake:
        return lake_in(shutil.copytree(prepared(batches), tmp_path, dirs_exist_ok=True))

    return made


def lake_in(folder: Path) -> Lake:
    file = folder / "tiny.yml"
    file.write_text(DECLARATION)
    return Lake(folder / "lake", load(file))


def owned(lake: Lake, *paths: str) -> list[Table]:
    """All or some tables of a lake, fenced by a process that writes them from now on."""
    epoch = 1 + highest_table_epoch(lake.layout, "tiny")
    found = [t for t in tables_of(lake.layout, "tiny") if not paths or t.name in paths]
    for table in found:
        table.fence(epoch)
    return found


def compacted(lake: Lake, *paths: str, limits: CompactionLimits = AT_ONCE) -> dict[str, Compacted]:
    steps = compact_tables(
        lake.layout, lake.pipeline, owned(lake, *paths), nullcontext, later(), limits
    )
    return {step.table: step for step in steps if step is not None}


def vacuumed(
    lake: Lake, *paths: str, keep_for: timedelta = timedelta(), now: datetime | None = None
) -> dict[str, Vacuumed]:
    clock = later() if now is None else lambda: now
    tables = owned(lake, *paths)
    done = vacuum_tables(lake.layout, lake.pipeline, tables, keep_for, nullcontext, clock)
    return {each.table: each for each in done if each is not None}


def later(more: timedelta = timedelta()) -> Callable[[], datetime]:
    """A clock with the current time plus ``more``."""
    return lambda: datetime.now(UTC) + more


def rows(layout: Layout, path: str, version: int | None = None) -> list[str]:
    found = DeltaTable(layout.storage.uri(path), version=version).to_pyarrow_table()
    return sorted(map(repr, pa.table(found).to_pylist()))


def all_rows(layout: Layout) -> dict[str, list[str]]:
    return {path: rows(layout, path) for path in SCHEMAS}


def files_of(layout: Layout, paths: Iterable[str] = tuple(SCHEMAS)) -> Iterator[str]:
    """The files that lie in the folders of tables."""
    for path in paths:
        yield from (s.path for s in layout.storage.list(path, recursive=True))


@pytest.fixture
def short_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short log is worth a Delta checkpoint, too."""
    monkeypatch.setattr("headgate.history.maintenance.retention.WORTH_A_CHECKPOINT", 4)


def maintain(lake: Lake) -> None:
    """Delete all that can be deleted: a log needs a checkpoint after the one it begins with."""
    compacted(lake)
    vacuumed(lake)
    for each in owned(lake):
        DeltaTable(each.storage.uri()).create_checkpoint()
    vacuumed(lake)


Before = dict[str, list[str]]


@pytest.fixture
def maintained(
    short_logs: None, prepared: Callable[[int], Path], tmp_path: Path
) -> tuple[Lake, Before]:
    """A lake of twelve batches after ``maintain``, and its rows before it."""

    def make(folder: Path) -> None:
        maintain(lake_in(shutil.copytree(prepared(12), folder, dirs_exist_ok=True)))

    put(tmp_path, "maintained", make)
    return lake_in(tmp_path), all_rows(lake_in(prepared(12)).layout)


def table(lake: Lake, path: str) -> Table:
    return Table(lake.layout.storage, path, pipeline="tiny")


@pytest.fixture
def any_counts() -> None:
    """Here commits must state the rows that their files have."""
