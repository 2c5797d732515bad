"""One row per key over all time: its rows are those of the definition, however the driver ends, and
no operation makes one of them final."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.errors import DeclarationError
from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.history.backfill.compatibility import require_windows
from headgate.history.backfill.errors import OtherDeclarationError
from headgate.insight.final_periods.finality import final_up_to
from headgate.insight.ledger import balance
from headgate.insight.ledger.by_id import by_id
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.failing import catch_up_despite
from tests.support.landing import Landing, split
from tests.support.tables import Row, read

pytestmark = pytest.mark.spark

DECLARATION = """
pipeline: readings
sources:
  raw:
    files: {{path: "{landing}", format: json, order: name, settle: 0 s}}
    record:
      event_id: [id]
      event_time: {{column: at}}
      duplicates: {{within: 10 minutes}}
      schema: {{id: string, site: string, level: int, value: "decimal(12,2)", at: timestamp}}
silver: {{clean: {{from: raw}}}}
gold:
  per_site:
    from: clean
    running: true
    by: [site]
    where: level is not null
    measures: {{events: count(*), total: sum(value), high: max(level), newest: last(level)}}
  in_all:
    from: clean
    running: true
    measures: {{events: count(*)}}
"""
FILES = 5
PLACES = ("gold.staged", "gold.committed", "gold.committed:2")


def declare(folder: Path, landing: Landing) -> Pipeline:
    file = folder / "readings.yml"
    file.write_text(DECLARATION.format(landing=landing.folder))
    return load(file)


def expected(silver: list[Row]) -> dict[Any, tuple[Any, ...]]:
    """The rows by site, computed a second time in plain Python."""
    found: dict[Any, list[Row]] = defaultdict(list)
    for row in silver:
        if row["level"] is not None:
            found[row["site"]].append(row)
    return {
        site: (
            len(rows),
            sum((r["value"] for r in rows if r["value"] is not None), Decimal(0)),
            max(r["level"] for r in rows),
            max(rows, key=lambda r: (r["_event_time"], r["_partition"], r["_offset"]))["level"],
        )
        for site, rows in found.items()
    }


def check(engine: Engine) -> None:
    silver, gold = read(engine.root, "silver/clean"), read(engine.root, "gold/per_site")
    found = {r["site"]: (r["events"], r["total"], r["high"], r["newest"]) for r in gold}
    assert len(found) == len(gold)
    assert found == expected(silver)
    (row,) = read(engine.root, "gold/in_all")
    assert row["events"] == len(silver)
    assert not any(row["final"] for row in [*gold, row])
    assert not read(engine.root, "late/per_site")
    assert balance(engine.layout, engine.pipeline).differences == ()
    assert by_id(engine.layout, engine.pipeline).findings == ()


def test_its_life(spark: SparkSession, tmp_path: Path) -> None:
    landing = Landing(tmp_path / "landing")
    landing.write_all(split(readings(300, seed=7), FILES))
    pipeline = declare(tmp_path, landing)
    engine = Engine(spark, pipeline, tmp_path / "root")
    catch_up_despite(engine, PLACES)
    check(engine)
    savepoint = engine.savepoint()
    engine.drain()
    engine.operate("late_replay", table="per_site", **{"from": None, "to": None, "keys": {}})
    engine.ingest(FILES)
    engine.catch_up()
    check(engine)
    assert final_up_to(engine.layout, pipeline, "per_site") is None
    engine.restore(savepoint)
    engine = Engine(spark, pipeline, engine.root)
    engine.list_new()
    engine.catch_up()
    check(engine)


def test_what_has_no_meaning_for_it_is_refused(tmp_path: Path) -> None:
    pipeline = declare(tmp_path, Landing(tmp_path / "landing"))
    with pytest.raises(OtherDeclarationError, match="has no windows"):
        require_windows(pipeline.gold["per_site"])
    text = pipeline.text + (
        "publish: {sites: {from: gold.per_site, kafka: {servers: 'localhost:1', topic: t}}}\n"
    )
    with pytest.raises(DeclarationError, match="no row of gold.per_site is ever final"):
        load(pipeline.file, text=text)
    load(pipeline.file, text=text.replace("per_site, kafka", "per_site, when: update, kafka"))
    late = pipeline.text.replace("    by: [site]\n", "    by: [site]\n    allowed_lateness: 1 s\n")
    with pytest.raises(DeclarationError, match="has no meaning with 'running'"):
        load(pipeline.file, text=late)
