"""Hostile records and rules of rows: no good row is rejected or quarantined, no bad one is in
silver. The oracle decides each record from its bytes, in plain Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from tests.oracle import Tables, derive
from tests.support.engine import Engine
from tests.support.landing import Landing, split
from tests.support.mutators import MUTATORS, hostile_records
from tests.support.rounds import IN_FULL
from tests.support.ruled import ORACLE, declare_ruled, ruled
from tests.support.tables import differences

pytestmark = pytest.mark.spark

COUNT, FILES = (10_000, 5) if IN_FULL else (800, 2)
GOLD = ("bands",)


@pytest.mark.parametrize("seed", range(5) if IN_FULL else [3])
def test_hostile_records_end_where_they_should(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    assert len(MUTATORS) >= 40
    landing = Landing(tmp_path / "landing")
    landing.write_all(split(list(hostile_records(COUNT, seed)), FILES))
    engine = Engine(spark, declare_ruled(tmp_path, landing.folder, GOLD, ORACLE), tmp_path / "root")
    engine.list_new()
    for end in range(1, FILES + 1):
        engine.ingest(end)
        engine.catch_up()
    expected = derive(landing.records(), ruled(GOLD, ORACLE))
    require_all_kinds(expected)
    assert differences(engine.root, expected) == {}
    assert balance(engine.layout, engine.pipeline).differences == ()
    assert by_id(engine.layout, engine.pipeline).findings == ()


def require_all_kinds(expected: Tables) -> None:
    """Every rule is broken and met, and no outcome is rare."""
    for table, rules in ORACLE.items():
        outcomes = (expected.silver[table], expected.rejected[table])
        assert min(map(len, outcomes)) >= COUNT / 100, table
        broken, offered = expected.counts["suites"][table], sum(map(len, outcomes))
        assert broken["replaced"] >= COUNT / 400, table
        assert all(0 < broken.get(f"rule:{rule}", 0) < offered for rule in rules), (table, broken)
    reasons = {row["reason"] for row in expected.quarantine}
    assert {"unparsable", "wrong_type", "missing_id", "missing_time", "unparsable_time"} <= reasons
