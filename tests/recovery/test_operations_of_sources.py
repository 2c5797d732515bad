"""Commands about a pipeline of two sources, and the drivers that continue them, are killed at every
named place. In the end, the tables of each source are those of the oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.setup.broker.running import Broker
from tests.recovery.test_kafka import of_the_past
from tests.support.driver_here import run_here
from tests.support.drivers import begin
from tests.support.failing import passing
from tests.support.landing import split
from tests.support.market import Market, Source, Topic
from tests.support.market_requests import (
    Backfill,
    Load,
    MarketRequest,
    Rebuild,
    Replay,
    Restore,
    RestoreBeforeSource,
    RestoreWithoutSource,
    Upgrade,
)
from tests.support.rounds import IN_FULL, in_full

pytestmark = [pytest.mark.recovery, pytest.mark.spark]


class RestoreOfTopic(Restore):
    """A landing folder and a topic."""

    def sources(self, folder: Path, broker: Callable[[], Broker]) -> Mapping[str, Source]:
        topic = Topic(split(of_the_past(200, seed=2), 5), broker())
        return {**super().sources(folder, broker), "in2": topic}


REQUESTS: Mapping[str, MarketRequest] = {
    "restore": Restore(),
    "restore, topic read again": RestoreOfTopic(reread=True),
    "restore, source added": RestoreBeforeSource(),
    "restore, source added, read again": RestoreBeforeSource(reread=True),
    "restore, source removed": RestoreWithoutSource(),
    "restore, source removed, read again": RestoreWithoutSource(reread=True),
    "rebuild": Rebuild(),
    "upgrade": Upgrade(),
    "load": Load(),
    "replay": Replay(),
    "backfill": Backfill(),
}
Kills = tuple[str, ...]
"""Where one process after the other is killed. Each process counts its passages of a place, and
first fences all tables, which are commits: `silver.committed:5` is the first one after those of
four silver tables."""
DECIDED = ("fence:11", "control.staged", "control.committed:2")
RESET = (
    *("quarantine.committed:3", "rejected.committed:3", "silver.committed:6"),
    *("late.committed:6", "gold.committed:6", "reset.table_done"),
)
OTHER_RESTORES: tuple[Kills, ...] = (
    ("restore.fenced:8", "reset.intended", "reset.table_done:3"),
    ("reset.table_done:6", "reset.table_done"),
)
KILLS: Mapping[str, tuple[Kills, ...]] = {
    "restore": (
        ("reset.table_done:9",),
        ("fence:11", "restore.fenced:11", *DECIDED[1:], *RESET),
        ("control.decided", "reset.table_done:9"),
        ("reset.intended", "reset.table_done:2"),
    ),
    "restore, topic read again": (
        ("fence:10", "restore.fenced:10", *DECIDED[1:], "bronze.committed:3", *RESET),
        ("bronze.committed:4", "reset.table_done:9"),
        ("control.decided", "reset.table_done"),
        ("reset.intended", "reset.table_done:2"),
    ),
    **{name: OTHER_RESTORES for name in REQUESTS if name.startswith("restore, source")},
    "rebuild": (
        ("reset.table_done:3",),
        (
            *(*DECIDED, "silver.staged", "rejected.staged", "rejected.committed:4"),
            *("silver.committed:7", "gold.staged:2", "late.staged", "late.committed:7"),
            *("gold.committed:7", "operation.staged", "operation.table_done"),
            *("rebuild.ready", "control.decided", "reset.table_done:5", "files.listed"),
        ),
        ("rebuild.recorded", "reset.intended", "reset.table_done"),
    ),
    "upgrade": (
        (
            *(*DECIDED, "silver.staged", "silver.committed:8", "gold.staged", "late.staged"),
            *("late.committed:8", "gold.committed:8", "operation.staged", "operation.table_done"),
            *("files.listed", "bronze.staged", "bronze.committed:4", "bronze.ingested"),
            *("rejected.staged", "quarantine.staged", "quarantine.committed:4"),
            *("rejected.committed:4", "rebuild.ready", "control.decided", "reset.table_done:5"),
        ),
        ("rebuild.recorded", "reset.intended", "reset.table_done"),
    ),
    "load": (
        (
            *("files.staged", "files.committed", *DECIDED, "bronze.staged", "bronze.committed:3"),
            *("silver.staged:2", "rejected.staged", "quarantine.staged"),
            *("quarantine.committed:3", "rejected.committed:3", "silver.committed:5"),
            *("gold.staged:2", "late.staged", "late.committed:5", "gold.committed:5"),
            *("load.ingested", "control.decided", "operation.staged", "operation.table_done:2"),
            "operation.intended",
        ),
        ("control.decided", "load.replay_intended", "operation.table_done"),
    ),
    "replay": (
        (
            *("replay.written", *DECIDED, "bronze.staged", "bronze.committed:3"),
            *("silver.staged:2", "silver.committed:5", "gold.staged:2", "late.staged"),
            *("late.committed:5", "gold.committed:5"),
        ),
        ("control.decided", "replay.committed", "silver.committed:6"),
    ),
    "backfill": (
        (
            *("backfill.held", "silver.staged:2", "rejected.staged", "rejected.committed"),
            *("silver.committed", "backfill.silver_made", "backfill.compared:2"),
            *("backfill.reported", "backfill.asked", *DECIDED, "gold.staged"),
            *("operation.staged", "gold.committed:5", "operation.table_done"),
        ),
        ("control.decided", "operation.table_done"),
        ("operation.intended", "operation.staged:2"),
        ("operation.taken_in",),
        ("backfill.removing",),
    ),
}
SHORT = ("restore", "rebuild")
"""The requests of short runs, with their first kills only."""
CASES = [
    (name, kills)
    for name, found in KILLS.items()
    for kills in (found if IN_FULL else found[: name in SHORT])
]


Copied = Callable[[str, Path], tuple[MarketRequest, Market]]


@pytest.fixture(scope="module")
def copied(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Copied:
    """Returns a request, and a copy of the pipeline that it is about, in a folder."""

    @cache
    def begun(name: str) -> Market:
        folder = tmp_path_factory.mktemp("begun")
        sources = REQUESTS[name].sources(folder, lambda: request.getfixturevalue("broker"))
        market = Market(folder, sources)
        REQUESTS[name].prepare(spark, market)
        return market

    return lambda name, folder: (REQUESTS[name], begun(name).copied(folder))


@pytest.mark.parametrize(("name", "kills"), CASES)
def test_killed_at_every_step(
    spark: SparkSession, tmp_path: Path, copied: Copied, name: str, kills: Kills
) -> None:
    """After a kill, the command is typed again. Once there is a request or a decision, drivers
    continue."""
    asked, market = copied(name, tmp_path)
    for place in kills:
        if market.is_asked(asked.kind):
            market.run(failpoint=place)
        else:
            ended = begin(*map(str, asked.command(market)), failpoint=place).end()
            assert ended.was_killed, f"{place}: {ended.output}"
    go_on(spark, asked, market)


def go_on(spark: SparkSession, asked: MarketRequest, market: Market) -> None:
    """Carry the request out, with new input, and compare all tables."""
    market.deliver(1, *asked.moving)
    if not market.is_asked(asked.kind):
        market.say(spark, *asked.command(market))
    run_here(spark, market.task)
    if asked.away:
        market.declare(*market.sources)
    market.deliver(1)
    run_here(spark, market.task)
    asked.check(market)
    assert len(market.decisions().of(asked.kind)) == 1


@in_full
@pytest.mark.parametrize("name", REQUESTS)
def test_no_place_is_left_out(
    spark: SparkSession, tmp_path: Path, copied: Copied, name: str
) -> None:
    """A command that nobody kills passes no other places."""
    asked, market = copied(name, tmp_path)
    passed = [""]
    with passing(passed.append):
        market.say(spark, *asked.command(market))
    alike = (KILLS[other] for other, each in REQUESTS.items() if each.kind == asked.kind)
    killed = {place.partition(":")[0] for found in alike for kills in found for place in kills}
    # The commit of a fence counts as the fence.
    assert {name for before, name in pairwise(passed) if before != "fence"} <= killed
    go_on(spark, asked, market)


@in_full
@pytest.mark.parametrize("place", ["restore.fenced", "reset.intended", "reset.table_done"])
def test_an_upgrade_is_killed_while_it_rolls_back(
    spark: SparkSession, tmp_path: Path, copied: Copied, place: str
) -> None:
    """The driver that `headgate upgrade` starts dies while it rebuilds, and the command while it
    restores the tables. Then the declaration is deployed again."""
    asked, market = copied("upgrade", tmp_path)
    places = tmp_path / "places"
    places.mkdir()
    for name in ("silver.staged", place):
        (places / name).touch()
    ended = begin("upgrade", *map(str, market.of()), failpoint=f"@{places}").end()
    assert ended.was_killed, ended.output
    assert not [*places.iterdir()], ended.output
    market.say(spark, *asked.command(market))
    market.deliver(1)
    run_here(spark, market.task)
    asked.check(market)
