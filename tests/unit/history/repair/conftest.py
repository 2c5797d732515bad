"""A small pipeline's tables with every batch in each, written without Spark, to be damaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from headgate.declaration.load import load
from headgate.flow.sources.files.log import FilesLog
from headgate.history.repair.apply import apply
from headgate.history.repair.examine import examine
from headgate.history.repair.plan import Plan
from headgate.history.repair.way_back import SourceHolds
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import create_savepoint
from headgate.lake.tables.table import Table
from tests.support import lake as support
from tests.support.fake_stages import Record, without_spark
from tests.support.rounds import IN_FULL

NOW = datetime(2026, 5, 4, 13, tzinfo=UTC)
TIME = pa.timestamp("us", "UTC")
BRONZE, ASIDE = "bronze/events", "quarantine/events"
SILVER = ("silver/good", "silver/other")
GOLD = ("gold/per_minute", "gold/per_hour")
LATE = ("late/per_minute", "late/per_hour")
BUILT = (ASIDE, *SILVER, *LATE, *GOLD)
FILES = "_headgate/files/events"


@dataclass
class Lake(support.Lake):
    """Each landing file has three records: one is quarantined, one is late, one is folded. Every
    fifth file makes windows final."""

    def open(self) -> None:
        """Fence all tables with a new epoch, as a driver does."""
        self.start()

    @property
    def tables(self) -> dict[str, Table]:
        return {t.name: t for t in self.runtime.owned() if t.name != FILES}

    def land_more(self, count: int) -> None:
        """Land ``count`` new files."""
        first = self.last_sequence + 1
        for number in range(first, first + count):
            seals = number % 5 == 0
            bad, late = Record(number, bad=True), Record(number, late=True)
            self.land([bad, late, Record(number, seals=seals)])

    def run(self, files: int = 0) -> Lake:
        """Land ``files`` files. Process each unread file as a batch, in all tables."""
        self.land_more(files)
        for end in range(self.position + 1, self.last_sequence + 1):
            self.ingest(end)
            self.catch_up()
        self.catch_up()
        return self

    def catch_up_silver(self) -> None:
        self.runtime.stages.catch_up(("silver",), NOW, None, (), self.runtime.resets.generation)

    def folder(self, path: str) -> Path:
        return Path(self.layout.storage.uri(path))

    def entries(self, path: str) -> list[Path]:
        return sorted(self.folder(path).glob("_delta_log/*.json"))

    def data_files(self, path: str) -> list[Path]:
        """The live files of a table, in the order in which they were written."""
        handle = DeltaTable(self.layout.storage.uri(path))
        paths = pa.table(handle.get_add_actions()).column("path").to_pylist()
        in_order = sorted(paths, key=lambda p: int(p.split("/")[1].split("-")[1]))
        return [self.folder(path) / p for p in in_order]

    def rows(self, path: str) -> list[str]:
        table = DeltaTable(self.layout.storage.uri(path)).to_pyarrow_table()
        return sorted(repr(row) for row in table.to_pylist())

    def all_rows(self) -> dict[str, list[str]]:
        return {path: self.rows(path) for path in (BRONZE, *BUILT) if self.folder(path).exists()}

    def recorded(self) -> list[tuple[int, str, int, str]]:
        log = FilesLog.of(self.layout.storage, "tiny", "events")
        log.load()
        return [(f.sequence, f.path, f.size, f.status) for f in log.files]

    def take(self) -> Savepoint:
        return create_savepoint(self.layout, self.pipeline, NOW)

    def examine(self, scratch: Path, source_holds: SourceHolds = lambda *_: None) -> Plan:
        return examine(self.layout, self.pipeline, scratch, source_holds)

    def repair(self, plan: Plan) -> None:
        """Repair like another process, with a new epoch."""
        self.epoch += 1
        apply(self.layout, self.pipeline, plan, self.epoch, NOW + timedelta(seconds=self.epoch))


def lake_in(folder: Path) -> Lake:
    """The lake in a folder, opened by a new driver."""
    return Lake(load(folder / "tiny.yml"), folder / "lake")


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Returns a folder with six batches in every table of a declaration. Every test copies it."""

    @cache
    def made(declaration: str) -> Path:
        folder = tmp_path_factory.mktemp("prepared")
        support.declared(folder, declaration)
        with without_spark():
            lake_in(folder).run(6)
        return folder

    return made


@pytest.fixture
def lake(
    request: pytest.FixtureRequest, prepared: Callable[[str], Path], tmp_path: Path
) -> Iterator[Lake]:
    """One table of each kind, or those of ``of_two``: each further table makes every case
    slower."""
    declaration = getattr(request, "param", support.WIDE if IN_FULL else support.NARROW)
    with without_spark():
        yield lake_in(shutil.copytree(prepared(declaration), tmp_path / "here"))


of_two = pytest.mark.parametrize("lake", [support.WIDE], ids=["of two"], indirect=True)
"""Two silver tables, and two gold tables over one of them."""
