"""The queries of Nexmark that the example declares: each table has the rows that DuckDB finds in
all events at once, however batches end.

At the end, a drain makes the open rows final, so all events are in all tables; tables with
``running`` have no final rows, and are complete after each batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.contracts.operator import operator_of
from headgate.setup.demo.feeding import write_slice
from tests.nexmark.answers import ANSWERS, Input
from tests.nexmark.declared import LANDING, declare
from tests.nexmark.generator import BID, Stream
from tests.support.engine import Engine
from tests.support.rounds import IN_FULL
from tests.support.tables import read

pytestmark = pytest.mark.spark

STREAM = Stream(
    seed=7,
    start=datetime(2026, 3, 1, 9, 29, 50, tzinfo=UTC),
    rate=100.0,
    disorder=100,
    # Bids of the day, of the evening, and of the night after it.
    busy=1_600,
    pause=timedelta(hours=9, minutes=30),
)
EVENTS, FILE = 4_809, 700
"""The last nine events are after the last pause, so that few bids make an auction hot."""
BATCHES = (1, 3, 1, 2) if IN_FULL else (4, 3)
"""How many files each batch has. A new driver takes each."""


def equal_bids() -> list[bytes]:
    """Bids after all others. Two are the highest of their window and of their auction. Two of one
    bidder have the same time, and with them, two auctions have as many bids in a window."""
    last = STREAM.start + timedelta(seconds=EVENTS / STREAM.rate) + 3 * STREAM.pause
    more = {"channel": "Apple", "url": "https://a/b/c", "extra": "acc"}
    found = []
    for auction, bidder, price, at in (
        (1289, 1, 2 * 10**8, 1.0),
        (1289, 2, 2 * 10**8, 0.5),
        (1203, 3, 500, 1.5),
        (1203, 3, 400, 1.5),
    ):
        bid = {"auction": auction, "bidder": bidder, "price": price, **more}
        time = (last + timedelta(seconds=at)).isoformat(timespec="milliseconds")
        found.append(json.dumps({"event_type": BID, "bid": bid, "dateTime": time}).encode())
    return found


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Engine:
    """All events have been ingested, and all tables are drained."""
    folder = tmp_path_factory.mktemp("nexmark")
    pipeline = declare(folder)
    slices = enumerate(STREAM.slices(EVENTS, FILE))
    for files in BATCHES:
        for number, part in (next(slices) for _ in range(files)):
            more = equal_bids() if len(part.lines) < FILE else []
            write_slice(folder / LANDING, number, [*part.lines, *more], part.now)
        engine = Engine(spark, pipeline, folder / "lake").run_all()
    assert next(slices, None) is None
    engine.drain()
    return engine


@pytest.fixture(scope="module")
def sent(engine: Engine) -> Iterator[Input]:
    with closing(Input(sorted((engine.root.parent / LANDING).iterdir()))) as input_:
        yield input_


@pytest.mark.parametrize("query", ANSWERS)
def test_the_rows_are_those_of_duckdb(query: str, engine: Engine, sent: Input) -> None:
    found = sent.difference(query, engine.root)
    assert found.shown
    assert (found.more, found.fewer) == ([], [])


def test_no_event_is_left_out(engine: Engine) -> None:
    """None is late or invalid, and no row is open that can be final."""
    assert read(engine.root, "quarantine/events", "nexmark") == []
    for table in engine.pipeline.gold.values():
        if table.reads is None:
            assert read(engine.root, f"late/{table.name}", "nexmark") == [], table.name
        finals = {row["final"] for row in read(engine.root, f"gold/{table.name}", "nexmark")}
        assert finals == {operator_of(table).ends}, table.name
