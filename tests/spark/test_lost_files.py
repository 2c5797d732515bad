"""A commit of which a file is lost, or there twice, is refused. The next driver computes its batch
again, and all tables are as the oracle's."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate.flow.bronze import batches, stage
from headgate.flow.gold import fold_stage
from headgate.flow.operations.late_replay import replay_document
from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from headgate.lake.storage.files import Storage
from headgate.lake.tables import arrow, staging
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.errors import MiscountedError
from headgate.lake.tables.frames import TableRows
from tests.oracle import derive
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.landing import Landing, split
from tests.support.ruled import declare_ruled, ruled
from tests.support.tables import differences

pytestmark = pytest.mark.spark
GOLD = ("sliding",)

Harm = Callable[[Storage, DataFile], None]


def lose(storage: Storage, file: DataFile) -> None:
    Path(storage.uri(file.path)).unlink()


def double(storage: Storage, file: DataFile) -> None:
    """As if a second attempt of the task had written it, too."""
    path = Path(storage.uri(file.path))
    shutil.copy(path, path.with_name(f"again-{path.name}"))


@contextmanager
def harming(table: str, part: str = "", harm: Harm = lose) -> Iterator[None]:
    """Harm the first file of a table that is written, between the write and the commit. ``part`` is
    in its path."""
    real, harmed = arrow.describe, list[str]()

    def describe(storage: Storage, folder: str, time_column: str) -> tuple[DataFile, ...]:
        found = real(storage, folder, time_column)
        if storage.root.endswith(table) and not harmed:
            for file in found:
                if part in file.path and not harmed:
                    harm(storage, file)
                    harmed.append(file.path)
        return real(storage, folder, time_column) if harmed else found

    with pytest.MonkeyPatch.context() as patched:
        for module in (arrow, staging):
            patched.setattr(module, "describe", describe)
        yield
    assert harmed, f"{table} has written no file"


@contextmanager
def losing_bronze(*, in_workers: bool) -> Iterator[None]:
    """Bronze describes its files as it writes them: one of them does not reach the commit."""
    kind = batches.InWorkers if in_workers else batches.InDriver
    real = kind.write

    def write(*args: Any) -> tuple[DataFile, ...]:
        return real(*args)[1:]

    with pytest.MonkeyPatch.context() as patched:
        if in_workers:
            patched.setattr(stage, "IN_DRIVER", 0)
        patched.setattr(kind, "write", write)
        yield


@contextmanager
def losing_late_of_spark() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched, harming("late/sliding"):
        patched.setattr(fold_stage, "FEW", -1)
        yield


@contextmanager
def reading_less(table: str) -> Iterator[None]:
    """Spark reads the files of a table without the first one."""
    real = TableRows.of

    def of(self: TableRows, files: Sequence[DataFile]) -> DataFrame:
        return real(self, files[1:] if self._table.name == table else files)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(TableRows, "of", of)
        yield


CASES = {
    "bronze of the driver": ("bronze/raw", lambda: losing_bronze(in_workers=False)),
    "bronze of workers": ("bronze/raw", lambda: losing_bronze(in_workers=True)),
    "quarantine": ("quarantine/raw", lambda: harming("quarantine/raw")),
    "rejected, as Spark selects them": (
        "silver/strong",
        lambda: harming("silver/strong", "_rejected=true"),
    ),
    "rejected": ("rejected/strong", lambda: harming("rejected/strong")),
    "silver": ("silver/strong", lambda: harming("silver/strong", "_rejected=false")),
    "silver twice": ("silver/strong", lambda: harming("silver/strong", "=false", double)),
    "late of the driver": ("late/sliding", lambda: harming("late/sliding")),
    "late of Spark": ("late/sliding", losing_late_of_spark),
    "open rows of gold": ("gold/sliding", lambda: harming("gold/sliding", "final=false")),
    "final rows of gold": ("gold/sliding", lambda: harming("gold/sliding", "final=true")),
    "silver of fewer rows": ("silver/strong", lambda: reading_less("bronze/raw")),
    "gold of fewer rows": ("gold/sliding", lambda: reading_less("silver/strong")),
    "gold twice": ("gold/sliding", lambda: harming("gold/sliding", "final=true", double)),
}


@dataclass
class Pipe:
    """Input arrives slice by slice: each has rows for every table."""

    engine: Engine
    landing: Landing
    slices: Iterator[bytes]
    number: int = 0

    def land(self) -> None:
        self.number += 1
        self.landing.write(f"{self.number:05d}.json", next(self.slices))

    def refuse(self, table: str, lost: Callable[[], Any], act: Callable[[], object]) -> None:
        """A commit of ``table`` is refused, and nothing of it is committed."""
        before = self.versions(table)
        with lost(), pytest.raises(MiscountedError, match=f"^{table}: the commit of batch"):
            act()
        assert self.versions(table) == before

    def versions(self, table: str) -> list[str]:
        return sorted(p.name for p in (self.engine.root / "readings" / table).glob("_delta_log/*"))

    def differences(self) -> dict[str, list[str]]:
        return differences(self.engine.root, derive(self.landing.records(), ruled(GOLD)))


@pytest.fixture(scope="module")
def pipe(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Pipe:
    folder = tmp_path_factory.mktemp("pipe")
    landing = Landing(folder / "landing")
    landing.folder.mkdir()
    pipeline = declare_ruled(folder, landing.folder, GOLD)
    slices = split(readings(100 * (len(CASES) + 1), seed=3), len(CASES) + 1)
    pipe = Pipe(Engine(spark, pipeline, folder / "root"), landing, iter(slices))
    pipe.land()
    pipe.engine.run_all()
    return pipe


@pytest.mark.parametrize("case", CASES)
def test_a_commit_with_other_files_is_refused_and_computed_again(pipe: Pipe, case: str) -> None:
    table, lost = CASES[case]
    pipe.land()
    pipe.engine.list_new()
    pipe.refuse(table, lost, pipe.engine.run_all)
    pipe.engine.start().run_all()
    assert pipe.differences() == {}


def test_an_operation_with_other_files_is_refused_and_carried_out_again(pipe: Pipe) -> None:
    engine, (gold, late) = pipe.engine.start(), ("gold/sliding", "late/sliding")
    engine.operate("drain")
    pipe.refuse(gold, lambda: harming(gold), engine.catch_up)
    engine.start().catch_up()
    engine.operate("late_replay", **replay_document("sliding"))
    pipe.refuse(late, lambda: harming(late), engine.catch_up)
    pipe.refuse(gold, lambda: harming(gold), engine.start().catch_up)
    engine.start().catch_up()
    assert engine.runtime.table(gold).refresh().total["replayed"] > 0
    assert balance(engine.layout, engine.pipeline).differences == ()
    assert by_id(engine.layout, engine.pipeline).findings == ()
