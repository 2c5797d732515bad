"""A source that is added to existing tables, and one that is removed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.driver.errors import DefinitionChangedError
from headgate.history.savepoints.deployment import deployment_of
from headgate.lake.tables.errors import FencedError
from headgate.lake.tables.payloads.gold import GoldPayload
from tests.support.fake_stages import Record, without_spark
from tests.support.lake import Lake, declared
from tests.support.several_sources import TWO, ingest, land, only

ORDERS, CLICKS = "gold/orders_per_minute", "gold/clicks_per_minute"


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """The source ``orders`` alone, with two batches and a drain between them."""
    with without_spark():
        lake = Lake(declared(tmp_path, only("orders")), tmp_path / "root")
        land(lake, "orders", [Record(0)])
        ingest(lake, "orders")
        lake.catch_up()
        lake.drain()
        land(lake, "orders", [Record(1)])
        ingest(lake, "orders")
        lake.catch_up()
        yield lake


def with_two(lake: Lake) -> Lake:
    pipeline = declared(lake.root.parent, TWO)
    return Lake(pipeline, lake.root, now=lake.now)


def n(lake: Lake, path: str) -> int:
    return lake.runtime.table(path).reader().refresh().n


def operation(lake: Lake, path: str) -> int:
    return lake.runtime.table(path).reader().refresh().operation


def test_its_tables_are_new_and_the_others_go_on(lake: Lake) -> None:
    pipeline = declared(lake.root.parent, TWO)
    found = {plan.table: plan.action for plan in deployment_of(lake.layout, pipeline).tables}
    assert {path for path, action in found.items() if action == "new"} == {
        "bronze/clicks",
        "silver/seen",
        CLICKS,
    }
    assert set(found.values()) == {"new", "resume"}
    both = Lake(pipeline, lake.root, now=lake.now)
    land(both, "clicks", [Record(0)], [Record(1)])
    ingest(both, "clicks")
    both.catch_up()
    assert [n(both, path) for path in ("bronze/orders", ORDERS)] == [2, 2]
    assert [n(both, path) for path in ("bronze/clicks", "silver/seen", CLICKS)] == [1, 1, 1]


def test_an_earlier_operation_does_not_touch_it_and_a_later_one_touches_all(lake: Lake) -> None:
    both = with_two(lake)
    land(both, "clicks", [Record(0)])
    ingest(both, "clicks")
    both.catch_up()
    assert (operation(both, ORDERS), operation(both, CLICKS)) == (1, 0)
    closed = GoldPayload.of(both.runtime.table(CLICKS).refresh()).closed_through
    assert closed is None
    both.drain()
    assert (operation(both, ORDERS), operation(both, CLICKS)) == (2, 2)
    (first, second) = both.decisions().operations
    assert {name: at.n for name, at in first.position.items()} == {"orders": 2 - 1}
    assert {name: at.n for name, at in second.position.items()} == {"orders": 2, "clicks": 1}
    assert [each.number for each in both.decisions().operations_of("clicks")] == [2]


@pytest.mark.parametrize("reread", [False, True])
def test_the_restore_of_a_savepoint_before_it_empties_what_is_built_from_it(
    lake: Lake, reread: bool
) -> None:
    savepoint = lake.savepoint()
    both = with_two(lake)
    land(both, "clicks", [Record(0)])
    ingest(both, "clicks")
    both.catch_up()
    both.drain()
    both.restore(savepoint, reread=reread)
    assert (n(both, "silver/seen"), n(both, CLICKS)) == (0, 0)
    both.start()
    both.catch_up()
    assert [n(both, path) for path in ("bronze/clicks", "silver/seen", CLICKS)] == [1, 1, 1]
    assert n(both, ORDERS) == 2
    assert operation(both, CLICKS) == 2, "its batches are as they were, and so is its drain"
    assert operation(both, ORDERS) == (1 if reread else 2)


def test_a_removed_source_is_left_as_it_is(lake: Lake) -> None:
    both = with_two(lake)
    land(both, "clicks", [Record(0)])
    ingest(both, "clicks")
    both.catch_up()
    one = Lake(declared(lake.root.parent, only("orders")), lake.root, now=both.now)
    land(one, "orders", [Record(2)])
    ingest(one, "orders")
    one.catch_up()
    assert n(one, ORDERS) == 3
    found = {plan.table: plan.action for plan in deployment_of(one.layout, one.pipeline).tables}
    assert {path for path, action in found.items() if action == "left"} == {
        "bronze/clicks",
        "silver/seen",
        CLICKS,
    }
    again = with_two(one)
    again.catch_up()
    assert [n(again, path) for path in (ORDERS, CLICKS)] == [3, 1]


def test_an_older_driver_is_shut_out_of_a_removed_source(lake: Lake) -> None:
    """It was frozen while the source was removed, and goes on."""
    both = with_two(lake)
    Lake(declared(lake.root.parent, only("orders")), lake.root, now=both.now).start()
    land(both, "clicks", [Record(0)])
    with pytest.raises(FencedError):
        ingest(both, "clicks")
    assert n(both, "bronze/clicks") == 0


def test_a_removed_source_keeps_its_batches_when_the_others_are_read_again(lake: Lake) -> None:
    """Nobody knows whether it still has what it had."""
    both = with_two(lake)
    land(both, "clicks", [Record(0)])
    ingest(both, "clicks")
    both.catch_up()
    savepoint = both.savepoint()
    land(both, "clicks", [Record(1)])
    ingest(both, "clicks")
    both.drain()
    one = Lake(declared(lake.root.parent, only("orders")), lake.root, now=both.now)
    one.restore(savepoint, reread=True)
    one.start()
    one.catch_up()
    assert operation(one, ORDERS) == 1
    again = with_two(one)
    again.catch_up()
    assert [n(again, path) for path in ("bronze/clicks", "silver/seen", CLICKS)] == [2, 2, 2]
    assert (operation(again, ORDERS), operation(again, CLICKS)) == (1, 2)


def test_another_source_in_place_of_the_only_one_is_refused(lake: Lake) -> None:
    other = declared(lake.root.parent, only("clicks"))
    assert deployment_of(lake.layout, other).action == "refuse"
    with pytest.raises(DefinitionChangedError, match="bronze/clicks"):
        Lake(other, lake.root, now=lake.now)
