"""Every named place fails once, without a process to kill: an unexpected error is raised there, the
driver's objects are dropped, and new ones take over in the same JVM."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.oracle import Closing, derive
from tests.property.protocol.histories import history_faults
from tests.recovery.test_kills import EVERYWHERE, GOLD, IN_OPERATIONS
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.failing import failing
from tests.support.landing import Landing, split
from tests.support.readings import declare, rules
from tests.support.rounds import IN_FULL
from tests.support.tables import differences

pytestmark = [pytest.mark.recovery, pytest.mark.spark]

PLACES = [place for place in EVERYWHERE if place.partition(":")[0] != "bronze.ingested"]


@pytest.mark.parametrize("at_once", [False, True] if IN_FULL else [False])
def test_an_error_at_every_named_place(spark: SparkSession, tmp_path: Path, at_once: bool) -> None:
    """After each failure the next start processes one more file, so every place has work. Stages
    process the batch that failed alone, or in one step with the next batch."""
    files = split(readings(600, seed=5), len(PLACES) + 1)
    landing = Landing(tmp_path / "landing")
    pipeline = declare(tmp_path, landing.folder, gold=GOLD)
    engine = Engine(spark, pipeline, tmp_path / "root")
    for number, place in enumerate(PLACES, 1):
        landing.write_all(files[number - 1 : number], first=number)
        with failing(place):
            engine.start().run_all()
        if at_once:
            engine.start().catch_up()
    landing.write_all(files[-1:], first=len(files))
    engine.start().run_all()
    assert differences(engine.root, derive(landing.records(), rules(gold=GOLD))) == {}
    assert history_faults(engine.layout, pipeline) == []


def test_an_error_at_every_step_of_an_operation(spark: SparkSession, tmp_path: Path) -> None:
    """The intent of the first driver is carried out before any later file is read."""
    files = split(readings(120, seed=6), 2 + len(IN_OPERATIONS))
    landing = Landing(tmp_path / "landing")
    pipeline = declare(tmp_path, landing.folder, gold=GOLD)
    engine = Engine(spark, pipeline, tmp_path / "root")
    landing.write_all(files[:1])
    engine.start().run_all()
    first = max(record.offset for record in landing.records())
    for number, place in enumerate(IN_OPERATIONS, 2):
        step = engine.drain if number == 2 else lambda: engine.start().run_all()
        with failing(place):
            step()
        landing.write_all(files[number - 1 : number], first=number)
    landing.write_all(files[-1:], first=len(files))
    engine.start().run_all()
    expected = derive(landing.records(), rules(gold=GOLD), drains=[Closing({0: first})])
    assert {row["reason"] for rows in expected.late.values() for row in rows} == {"late", "closed"}
    assert differences(engine.root, expected) == {}
    assert history_faults(engine.layout, pipeline) == []
