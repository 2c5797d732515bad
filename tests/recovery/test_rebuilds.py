"""Tables that are rebuilt beside the current ones: readers never see less than before, wherever the
driver dies."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.driver.task import RebuildRequest
from headgate.insight.ledger import balance
from tests.oracle import derive
from tests.property.protocol.histories import history_faults
from tests.recovery.test_kills import GOLD
from tests.support.drivers import PATIENCE
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.failing import failing
from tests.support.landing import Landing, split
from tests.support.polling import looked_again, polled, with_deltalake, with_duckdb
from tests.support.readings import declare, rules
from tests.support.rounds import in_full
from tests.support.spark_reader import polled_by_spark
from tests.support.tables import differences, state

pytestmark = [pytest.mark.recovery, pytest.mark.spark]

LOOKS = {"deltalake": with_deltalake("events"), "duckdb": with_duckdb("events")}
# In the order in which a rebuild comes to them; a fence is a commit too.
PLACES = (
    "rebuild.recorded",
    "silver.staged",
    "silver.committed:7",
    "gold.staged:2",
    "rebuild.ready",
    "reset.intended",
    "reset.table_done:2",
)


BEGUN = 3  # files that the tables have processed before the rebuild
FILES = split(readings(600, seed=5), BEGUN + 1 + len(PLACES))


@in_full
def test_readers_see_the_old_rows_until_the_new_ones_are_complete(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Everything is rebuilt from bronze, the stream goes on, and the driver dies at every step."""
    landing = Landing(tmp_path / "landing")
    landing.write_all(FILES[:BEGUN])
    pipeline, root = declare(tmp_path, landing.folder, gold=GOLD), tmp_path / "root"
    engine = Engine(spark, pipeline, root)
    engine.list_new()
    for end in range(1, BEGUN + 1):
        engine.ingest(end)
        engine.catch_up()
    gold, path = root / "readings/gold/sliding", "gold/sliding"
    with polled_by_spark(gold, "events", tmp_path) as by_spark, polled(gold, LOOKS) as others:
        seen = {**others, "spark": by_spark}
        anew = RebuildRequest(("silver/clean", "silver/strong"))
        for number, place in enumerate(PLACES, BEGUN + 1):
            landing.write_all(FILES[number - 1 : number], first=number)
            with failing(place):
                Engine(spark, pipeline, root, anew=anew).run_all()
            anew = RebuildRequest()  # the next driver continues the rebuild
            looked_again(seen, PATIENCE)
        assert state(root, path)["generation"] == 0
        landing.write_all(FILES[-1:], first=len(FILES))
        Engine(spark, pipeline, root).run_all()
        looked_again(seen, PATIENCE)
    assert state(root, path)["generation"] == 1
    for name, found in seen.items():
        sums = [sum(values) for values in found]
        assert all(0 < before <= after for before, after in pairwise(sums)), (name, sums)
    assert differences(root, derive(landing.records(), rules(gold=GOLD))) == {}
    assert history_faults(engine.layout, pipeline) == []
    assert balance(engine.layout, pipeline).balanced
