"""The positions of the tables of several sources."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.lake.tables.snapshot import newest, snapshot
from tests.support.fake_stages import Record, without_spark
from tests.support.lake import Lake
from tests.support.several_sources import declared_with_two, ingest, land


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """``orders`` has two batches, of which the second is not processed yet; ``clicks`` has one."""
    with without_spark():
        found = Lake(declared_with_two(tmp_path), tmp_path / "lake")
        land(found, "orders", [Record(), Record(bad=True)])
        ingest(found, "orders")
        land(found, "clicks", [Record()])
        ingest(found, "clicks")
        found.catch_up()
        land(found, "orders", [Record(minute=1)])
        ingest(found, "orders")
        yield found


def test_each_source_has_batch_ids_of_its_own(lake: Lake) -> None:
    at = snapshot(lake.layout, lake.pipeline)
    assert {name: position.n for name, position in at.bronze.items()} == {"orders": 2, "clicks": 1}
    assert at.n == {"orders": 1, "clicks": 1}
    lake.catch_up()
    assert snapshot(lake.layout, lake.pipeline).n == {"orders": 2, "clicks": 1}


def test_a_source_without_tables_over_it_has_processed_all(lake: Lake) -> None:
    (lake.root / "shop/gold/orders_per_minute/_delta_log").rename(lake.root / "gold")
    (lake.root / "shop/silver/paid/_delta_log").rename(lake.root / "silver")
    assert snapshot(lake.layout, lake.pipeline).n == {"orders": 2, "clicks": 1}


def test_downstream_tables_come_first(lake: Lake) -> None:
    paths = [*snapshot(lake.layout, lake.pipeline).tables]
    for source, silver in (("orders", "paid"), ("clicks", "seen")):
        upwards = f"gold/{source}_per_minute", f"silver/{silver}", f"bronze/{source}"
        assert [path for path in paths if path in upwards] == [*upwards]


def test_positions_are_those_of_each_source(lake: Lake) -> None:
    at = newest(lake.layout, lake.pipeline)
    read = {name: position.total("read") for name, position in at.bronze.items()}
    assert read == {"orders": 3, "clicks": 1}
    assert {name: position.n for name, position in at.quarantine.items()} == {
        "orders": 1,
        "clicks": 0,
    }
