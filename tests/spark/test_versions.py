"""The versions of a pipeline's tables that belong together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from headgate.insight.querying.names import Queried
from headgate.insight.querying.sandbox import QueryError
from headgate.insight.querying.sql import answer
from headgate.insight.querying.versions import NoSuchBatchError, versions_at
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.landing import Landing, split
from tests.support.maintained import compacted
from tests.support.readings import declare

pytestmark = pytest.mark.spark

SQL = """
select (select count(*) from bronze.raw), (select count(*) from silver.clean),
  (select count(*) from silver.strong), (select count(*) from quarantine),
  (select sum(events) from gold.bands), (select count(*) from late.bands)
"""
BATCHES = 3


def seen(engine: Engine, versions: Mapping[str, int] | None = None) -> tuple[Any, ...]:
    queried = Queried(engine.pipeline, engine.layout, versions=versions or {})
    _, (row,) = answer([queried], SQL, short=queried)
    return row


def at(n: int) -> dict[str, int]:
    return {"raw": n}


def test_a_cut_has_all_of_a_batch_and_nothing_later(spark: SparkSession, tmp_path: Path) -> None:
    landing = Landing(tmp_path / "landing")
    files = split(readings(300, seed=3), BATCHES + 1)
    engine = Engine(
        spark,
        declare(tmp_path, landing.folder, gold=("bands",), silver=("strong",)),
        tmp_path / "root",
    )
    states: dict[int, tuple[Any, ...]] = {}
    for number, content in enumerate(files[:BATCHES], 1):
        landing.write_all([content], first=number)
        engine.run_all()
        states[number] = seen(engine)
    landing.write_all([files[BATCHES]], first=BATCHES + 1)
    engine.list_new()
    engine.ingest()  # silver and gold have not processed it yet
    assert seen(engine) != states[BATCHES]
    assert versions_at(engine.layout, engine.pipeline).n == at(BATCHES)
    for number, expected in states.items():
        found = versions_at(engine.layout, engine.pipeline, at(number))
        assert (found.n, seen(engine, found.versions)) == (at(number), expected)
    assert len({*states.values()}) == BATCHES
    gold = versions_at(engine.layout, engine.pipeline, at(1)).versions["gold/bands"]
    assert compacted(engine)
    place = str(engine.root / "readings/gold/bands")
    gone = {*DeltaTable(place, gold).file_uris()} - {*DeltaTable(place).file_uris()}
    assert gone
    for path in gone:
        Path(path).unlink(missing_ok=True)
    with pytest.raises(QueryError, match="a vacuum has deleted files"):
        seen(engine, versions_at(engine.layout, engine.pipeline, at(1)).versions)
    for number in (BATCHES + 1, 99):
        with pytest.raises(NoSuchBatchError, match=f"the last one is {BATCHES}"):
            versions_at(engine.layout, engine.pipeline, at(number))
