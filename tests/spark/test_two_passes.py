"""A batch whose decoded parts are lost between its two passes is read again. The files that a
failed batch has left are deleted."""

from __future__ import annotations

import gzip
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from headgate.driver.source_loop import READ_ATTEMPTS
from headgate.flow.bronze import stage as bronze_stage
from headgate.flow.bronze.batches import InWorkers, ScratchLostError
from tests.oracle import Tables, derive
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.landing import ARRIVED, Landing, lines
from tests.support.readings import declare, rules
from tests.support.tables import differences

pytestmark = pytest.mark.spark

GOLD = ("bands",)


@pytest.fixture
def landing(tmp_path: Path) -> Landing:
    landing = Landing(tmp_path / "landing")
    landing.write_all([lines(readings(40, seed=5)), lines(readings(40, seed=6))])
    return landing


@pytest.fixture
def expected(landing: Landing) -> Tables:
    return derive(landing.records(), rules(gold=GOLD))


@pytest.fixture
def engine(
    spark: SparkSession, tmp_path: Path, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> Engine:
    """Small batches are decoded by workers, too: each file is a part of its own."""
    monkeypatch.setattr(bronze_stage, "IN_DRIVER", 0)
    engine = Engine(spark, declare(tmp_path, landing.folder, gold=GOLD), tmp_path / "root")
    engine.list_new()
    return engine


def test_a_task_may_have_no_record(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long line has parts without a record after its first part, and a file may have no line."""
    monkeypatch.setattr(bronze_stage, "IN_DRIVER", 0)
    monkeypatch.setattr("headgate.flow.sources.files.parts.BLOCK", 40)
    landing = Landing(tmp_path / "landing")
    values = readings(2, seed=5)
    landing.write("1.json", lines([values[0]]))
    path = landing.write("2.json.gz", b"")
    path.write_bytes(gzip.compress(b""))
    os.utime(path, (ARRIVED.timestamp(), ARRIVED.timestamp()))
    engine = Engine(spark, declare(tmp_path, landing.folder, gold=GOLD), tmp_path / "root")
    engine.run_all()
    assert differences(engine.root, derive(landing.records(), rules(gold=GOLD))) == {}


def scratch_of(batch: InWorkers) -> list[Path]:
    paths = [Path(path) for path in batch._paths]
    assert len(paths) == 2
    assert all(path.exists() for path in paths)
    return paths


def lose(monkeypatch: pytest.MonkeyPatch, times: int) -> list[Path]:
    """Delete one part of each of the next batches before it is written."""
    seen: list[Path] = []
    write = InWorkers.write

    def losing(self: InWorkers, *rest: Any) -> Any:
        paths = scratch_of(self)
        seen.extend(paths)
        if len(seen) <= 2 * times:
            paths[1].unlink()
        return write(self, *rest)

    monkeypatch.setattr(InWorkers, "write", losing)
    return seen


def test_a_batch_is_read_again_if_a_part_is_lost(
    engine: Engine, expected: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = lose(monkeypatch, times=1)
    engine.ingest()
    engine.catch_up()
    assert len(seen) == 4
    assert not any(path.exists() for path in seen)
    assert differences(engine.root, expected) == {}


def test_workers_may_be_killed_between_the_passes(
    engine: Engine, expected: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pass fails, and the batch is read again."""
    write, killed = InWorkers.write, list[int]()

    def killing(self: InWorkers, *rest: Any) -> Any:
        for process in [] if killed else psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # it may have ended since
                if "pyspark.daemon" in process.cmdline():
                    process.kill()
                    killed.append(process.pid)
        return write(self, *rest)

    monkeypatch.setattr(InWorkers, "write", killing)
    engine.ingest()
    engine.catch_up()
    assert killed
    assert differences(engine.root, expected) == {}


def test_a_batch_fails_if_parts_are_lost_each_time(
    engine: Engine, expected: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = lose(monkeypatch, times=READ_ATTEMPTS)
    with pytest.raises(ScratchLostError):
        engine.ingest()
    assert len(seen) == 2 * READ_ATTEMPTS
    engine.start().ingest()
    engine.catch_up()
    assert differences(engine.root, expected) == {}


def test_what_a_failed_batch_has_left_is_removed_by_the_next(
    engine: Engine, expected: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[Path] = []

    def failing(self: InWorkers, *_: object) -> Any:
        left.extend(scratch_of(self))
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(InWorkers, "write", failing)
        with pytest.raises(MemoryError):
            engine.ingest()
    assert all(path.exists() for path in left)
    engine.ingest()
    engine.catch_up()
    assert not any(path.parent.exists() for path in left)
    assert differences(engine.root, expected) == {}
