"""A replay of late rows whose batch is no longer in the logs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.driver.task import RebuildRequest
from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from headgate.lake.tables.log import list_log, read_commit
from tests.oracle import Replay, derive
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.landing import Landing, split
from tests.support.maintained import trimmed
from tests.support.readings import declare, rules
from tests.support.rounds import in_full
from tests.support.tables import differences

pytestmark = pytest.mark.spark

GOLD = ("bands",)
REPLAYED = 3
"""The batch after which late rows are folded."""


@pytest.mark.parametrize("path", ["gold/bands", pytest.param("silver/clean", marks=in_full)])
def test_a_table_that_is_built_anew_repeats_it(
    spark: SparkSession, tmp_path: Path, path: str
) -> None:
    landing = Landing(tmp_path / "landing")
    landing.write_all(split(readings(900, seed=10), 8))
    engine = Engine(spark, declare(tmp_path, landing.folder, gold=GOLD), tmp_path / "root")
    engine.list_new()
    for end in range(1, REPLAYED + 1):
        engine.ingest(end)
        engine.catch_up()
    engine.operate("late_replay", **{"table": "bands", "from": None, "to": None, "keys": {}})
    engine.catch_up()
    for end in range(REPLAYED + 1, 7):
        engine.ingest(end)
        engine.catch_up()
        if end > 4:  # the log begins with the first of two checkpoints
            trimmed(engine)
    for name in ("bronze/raw", "silver/clean"):
        storage = engine.layout.storage.at(name)
        oldest = read_commit(storage, list_log(storage).oldest)
        assert oldest is not None
        assert oldest.state.n > REPLAYED
    engine.ingest()
    engine.catch_up()
    after = max(record.offset for record in landing.records() if record.offset >> 36 < REPLAYED)
    expected = derive(landing.records(), rules(gold=GOLD), drains=[Replay({0: after}, "bands")])
    assert differences(engine.root, expected) == {}
    late = Counter(row["window_start"] for row in expected.late["bands"] if row["replayed"])
    revised = [row for row in expected.gold["bands"] if row["revision"]]
    assert any(row["events"] > late[row["window_start"]] for row in revised)
    anew = RebuildRequest((path,))
    engine = Engine(spark, engine.pipeline, engine.root, now=engine.now, anew=anew)
    engine.catch_up()
    assert engine.runtime.rebuild is None
    assert differences(engine.root, expected) == {}
    assert balance(engine.layout, engine.pipeline).balanced
    assert by_id(engine.layout, engine.pipeline).holds
