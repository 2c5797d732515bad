"""The positions of the tables of several sources."""

from __future__ import annotations

from headgate.lake.tables.snapshot import newest, snapshot
from tests.support.lake import Lake
from tests.support.several_sources import two_sources as _two_sources

two_sources = _two_sources


def test_each_source_has_batch_ids_of_its_own(two_sources: Lake) -> None:
    at = snapshot(two_sources.layout, two_sources.pipeline)
    assert {name: position.n for name, position in at.bronze.items()} == {"orders": 3, "clicks": 1}
    assert at.n == {"orders": 2, "clicks": 1}
    two_sources.catch_up()
    assert snapshot(two_sources.layout, two_sources.pipeline).n == {"orders": 3, "clicks": 1}


def test_tables_that_do_not_exist_hold_no_source_back(two_sources: Lake) -> None:
    for path in ("gold/orders_per_minute", "silver/paid"):
        two_sources.layout.storage.remove(path)
    assert snapshot(two_sources.layout, two_sources.pipeline).n == {"orders": 3, "clicks": 1}


def test_downstream_tables_come_first(two_sources: Lake) -> None:
    paths = [*snapshot(two_sources.layout, two_sources.pipeline).tables]
    for source, silver in (("orders", "paid"), ("clicks", "seen")):
        upwards = f"gold/{source}_per_minute", f"silver/{silver}", f"bronze/{source}"
        assert [path for path in paths if path in upwards] == [*upwards]


def test_positions_are_those_of_each_source(two_sources: Lake) -> None:
    at = newest(two_sources.layout, two_sources.pipeline)
    read = {name: position.total("read") for name, position in at.bronze.items()}
    assert read == {"orders": 6, "clicks": 2}
    refused = {name: position.total("quarantined") for name, position in at.quarantine.items()}
    assert refused == {"orders": 1, "clicks": 0}
