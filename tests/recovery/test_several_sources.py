"""Drivers of several sources are killed, frozen and restarted, and sources go away. In the end, the
tables of each source are those of the oracle, as if it were the only one."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.driver.lease import LeaseHeldError
from headgate.flow.sources.files.micro_batches import FilesMicroBatches, FilesRange, sequence_of
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.setup.broker import running
from tests.oracle import Closing
from tests.recovery.test_kafka import of_the_past
from tests.recovery.test_kills import IN_OPERATIONS
from tests.support.damage import has_checkpoint, spoil_checkpoint
from tests.support.driver_here import run_here
from tests.support.drivers import run
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.frozen import require_rising_epochs, require_shut_out
from tests.support.landing import split
from tests.support.market import Folder, Market, Source, Topic, folders
from tests.support.rounds import IN_FULL, ROUNDS, in_full

pytestmark = [pytest.mark.recovery, pytest.mark.spark]

TABLES = dict.fromkeys(("files", "bronze", "quarantine", "rejected"), 1) | dict.fromkeys(
    ("silver", "late", "gold"), 2
)
"""How many tables of a kind each source has."""


def everywhere(sources: int) -> Iterator[str]:
    """Each place that a batch passes, before and after the tables of the first source. A start
    commits to every table once: it fences them."""
    yield f"fence:{sources + 2}"
    yield "files.listed"
    yield f"files.listed:{sources}"
    for kind, tables in TABLES.items():
        fences = sources * tables
        if kind != "files":
            yield f"{kind}.staged"
        if kind in ("rejected", "silver", "gold"):
            yield f"{kind}.staged:{fences}"
        # Not every batch has refused records, or late rows for each table.
        most = 2 if kind in ("quarantine", "late") else fences
        for nth in sorted({1, tables, most}):
            yield f"{kind}.committed:{fences + nth}"
    yield "bronze.staged:2"
    yield "bronze.ingested"
    yield "bronze.ingested:2"


SOME = ("bronze.committed:4", "rejected.committed:3", "late.committed:6")
"""Both sources are in bronze; silver, then gold lacks a table whose side table has the batch."""


@pytest.mark.parametrize("count", [2, pytest.param(3, marks=in_full)])
def test_killed_at_every_step_of_the_batches(
    spark: SparkSession, tmp_path: Path, count: int
) -> None:
    """Every source has two new parts a run, one a batch."""
    places = list(everywhere(count)) if IN_FULL else SOME
    lines = 60 if IN_FULL else 20
    market = Market(tmp_path, folders(tmp_path, count, 2 * len(places) + 1, lines))
    spoiled = False
    for number, failpoint in enumerate(places):
        market.deliver(2)
        market.run(failpoint=failpoint)
        spoiled |= has_checkpoint(market.root)
        spoil_checkpoint(market.root, number)
    market.deliver(1)
    assert spoiled, "no kill has left a checkpoint"
    run_here(spark, market.task)
    market.is_right()


@pytest.fixture
def mixed(tmp_path: Path) -> Iterator[Market]:
    """A landing folder and a topic."""
    parts = 2 * len(list(everywhere(2)))
    with running.start(tmp_path / "kafka") as broker:
        sources: dict[str, Source] = {
            "folder": Folder(split(readings(60 * parts, seed=5), parts), tmp_path / "landing"),
            "topic": Topic(split(of_the_past(60 * parts, seed=6), parts), broker),
        }
        yield Market(tmp_path, sources)


@in_full
def test_killed_at_every_step_of_a_folder_and_a_topic(spark: SparkSession, mixed: Market) -> None:
    """Only one of the sources has a files log."""
    for number, failpoint in enumerate(everywhere(2)):
        kind = failpoint.partition(":")[0]
        mixed.deliver(2)
        mixed.run(failpoint=kind if kind.startswith("files") else failpoint)
        spoil_checkpoint(mixed.root, number)
    run_here(spark, mixed.task)
    mixed.is_right()


@in_full
@pytest.mark.parametrize("count", [2, 3])
def test_killed_at_every_step_of_an_operation(
    spark: SparkSession, tmp_path: Path, count: int
) -> None:
    """One decision has the position of every source. The tables of all sources carry it out before
    any later input is read, whichever driver does it."""
    places = (*IN_OPERATIONS, "operation.table_done:2")
    market = Market(tmp_path, folders(tmp_path, count, 3 + len(places)))
    first, *others = market.sources
    market.deliver(2, first)
    market.deliver(1, *others)
    drained = {name: [Closing(source.position)] for name, source in market.sources.items()}
    options: tuple[str, ...] = ("--drain",)
    for failpoint in places:
        market.run(*options, failpoint=failpoint)
        market.deliver(1)
        options = ()
    run_here(spark, market.task)
    market.is_right(drained)


@in_full
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_killed_at_random(spark: SparkSession, mixed: Market, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(5):
        for name in mixed.sources:
            mixed.deliver(chance.randrange(4), name)
        if chance.random() < 0.5:
            name = chance.choice(list(everywhere(2))).partition(":")[0]
            run(mixed.declaration, mixed.root, failpoint=f"{name}:{chance.randrange(1, 9)}")
        else:
            driver = mixed.start()
            time.sleep(chance.uniform(1, 25))
            driver.kill()
        spoil_checkpoint(mixed.root, number)
    mixed.deliver(1)
    run_here(spark, mixed.task)
    mixed.is_right()


FROZEN = ("gold.committed:6",)
MORE = (
    "bronze.staged",
    "bronze.staged:2",
    "bronze.committed:3",
    "bronze.committed:4",
    "files.listed:2",
    "silver.committed:6",
    "gold.staged",
    "late.committed:6",
)


@pytest.mark.parametrize("failpoint", FROZEN + (MORE if IN_FULL else ()))
def test_a_frozen_driver_is_shut_out_of_every_source(
    spark: SparkSession, tmp_path: Path, failpoint: str
) -> None:
    market = Market(tmp_path, folders(tmp_path, 2, 3))
    market.deliver(2)
    name, _, nth = failpoint.partition(":")
    frozen = market.start(failpoint=f"{name}:{nth or 1}:stop")
    try:
        frozen.wait_until_frozen()
        market.deliver(1)
        with pytest.raises(LeaseHeldError):
            run_here(spark, market.task)
        run_here(spark, replace(market.task, take_over=True))
        require_shut_out(frozen, market.root)
    finally:
        frozen.kill()
    require_rising_epochs(market.root)
    market.is_right()


@in_full
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_driver_takes_over_while_the_other_runs(
    spark: SparkSession, tmp_path: Path, nth: int
) -> None:
    """Both read both sources until the first one is refused."""
    market = Market(tmp_path, folders(tmp_path, 2, 40))
    market.deliver(20)
    first = market.start("--on")
    try:
        market.wait_for(
            first, lambda: all(market.read(name) >= 60 * nth for name in market.sources)
        )
        market.deliver(20)
        second = market.start("--take-over")
        try:
            refused, done = first.end(), second.end()
        finally:
            second.kill()
    finally:
        first.kill()
    assert refused.code == 4, refused.output
    assert done.code == 0, done.output
    market.is_right()


def go_on_without(market: Market, away: str, going: str, failpoints: Sequence[str]) -> None:
    """Drivers are killed while one source is away. Each reads what arrives in the other, unless it
    is killed while it processes what the one before it has left."""
    for number, failpoint in enumerate(failpoints):
        driver = market.start("--on", failpoint=failpoint)
        try:
            if number == 0:
                market.wait_for(driver, lambda: market.is_away(away))
            market.deliver(1, going)
            ended = driver.end()
        finally:
            driver.kill()
        assert ended.was_killed, ended.output


def away_and_back(
    spark: SparkSession, market: Market, away: str, going: str, failpoints: Sequence[str]
) -> None:
    """Nothing of a source is read while it is away, and everything once it is back."""
    market.sources[away].go_away()
    held = market.read(away)
    go_on_without(market, away, going, failpoints)
    assert market.read(away) == held
    market.sources[away].come_back()
    market.deliver(1)
    run_here(spark, market.task)
    market.is_right()


ALONE = ("gold.committed:5", "bronze.committed:3", "silver.committed:6", "late.committed:6")


def test_a_folder_is_away_while_drivers_are_killed(spark: SparkSession, tmp_path: Path) -> None:
    places = ALONE if IN_FULL else ALONE[:1]
    market = Market(tmp_path, folders(tmp_path, 2, 3 + len(places)))
    market.deliver(1)
    run_here(spark, market.task)
    away_and_back(spark, market, "in2", "in1", places)


@in_full
def test_a_broker_is_away_while_drivers_are_killed(spark: SparkSession, mixed: Market) -> None:
    mixed.deliver(2)
    run_here(spark, mixed.task)
    mixed.deliver(1, "topic")
    away_and_back(spark, mixed, "topic", "folder", ALONE)


@pytest.mark.parametrize("seed", range(max(ROUNDS, 1)))
def test_no_order_of_batches_changes_a_table(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    """The sources take turns at random, with batches of different sizes. Tables fall behind, and
    drivers are replaced."""
    chance = random.Random(seed)
    market = Market(tmp_path, folders(tmp_path, chance.choice([2, 3]) if IN_FULL else 2, 6))
    market.deliver(6)
    engine = Engine(spark, market.pipeline, market.root)
    unread = dict.fromkeys(market.sources, 0)
    while unread:
        name = chance.choice(list(unread))
        unread[name] = ingest(engine, name, unread[name] + chance.randrange(1, 5))
        if unread[name] == 6:
            del unread[name]
        if chance.random() < 0.4:
            engine.catch_up()
        if chance.random() < 0.2:
            engine.start()
    engine.catch_up()
    market.is_right()


def ingest(engine: Engine, name: str, end: int) -> int:
    """One batch of bronze: the files of one source up to sequence ``end``. Returns the last."""
    loop = engine.sources[name]
    files = loop.source
    assert isinstance(files, FilesMicroBatches)
    files.list_new()
    at = sequence_of(BronzePayload.of(engine.runtime.bronze[name].table.refresh()))
    end = min(end, files.log.last_sequence)
    assert loop.ingest(FilesRange(at, end))
    return end
