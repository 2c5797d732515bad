"""A rebuild of bronze is published between two batches of its source, without Spark."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headgate.driver.task import RebuildRequest
from tests.support.fake_stages import Record, without_spark
from tests.support.lake import WIDE, Lake, declared

BRONZE = "bronze/events"


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """A lake whose bronze is rebuilt, and has read all again."""
    with without_spark():
        lake = Lake(declared(tmp_path, WIDE), tmp_path / "root")
        lake.land([Record(0)], [Record(1)])
        lake.ingest()
        lake.catch_up()
        lake.anew = RebuildRequest((BRONZE,))
        lake.start()
        lake.list_new()
        lake.ingest()
        yield lake


@contextmanager
def reading(lake: Lake) -> Iterator[None]:
    """Another thread reads a batch."""
    begun, ends = threading.Event(), threading.Event()

    def read() -> None:
        with lake.runtime.bronze["events"].lock:
            begun.set()
            ends.wait(30)

    thread = threading.Thread(target=read)
    thread.start()
    assert begun.wait(30)
    try:
        yield
    finally:
        ends.set()
        thread.join()


def test_a_rebuild_is_not_published_while_a_batch_is_read(lake: Lake) -> None:
    """The batch would be committed to a log that nothing refers to any more."""
    with reading(lake):
        lake.catch_up()
        is_under_way = [lake.runtime.rebuild is not None]
    lake.catch_up()
    is_under_way.append(lake.runtime.rebuild is not None)
    assert is_under_way == [True, False]
    assert lake.runtime.table(BRONZE).refresh().total["read"] == 2


def test_the_source_goes_on_in_the_table_that_was_published(lake: Lake) -> None:
    lake.catch_up()
    lake.land([Record(2)])
    lake.ingest()
    lake.catch_up()
    assert lake.position == 3
    assert lake.runtime.table(BRONZE).refresh().total["read"] == 3
    assert lake.runtime.table("silver/good").refresh().n == 2
