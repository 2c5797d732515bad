"""Windows of N rows: equal to their definition in plain Python, however batches end; through
errors, drains, replays of refused records, loads, rebuilds and restores."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.errors import DeclarationError
from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.driver.task import RebuildRequest
from headgate.errors import UsageError
from headgate.history.backfill.compatibility import require_windows
from headgate.history.backfill.errors import OtherDeclarationError
from headgate.history.recompute.computing import recompute
from headgate.history.recompute.plan import WHOLE, require_ranges
from headgate.history.replay.corrections import as_refused, patched_records
from headgate.history.replay.refused import RefusedRecords, RefusedSelection
from headgate.insight.final_periods.finality import final_up_to
from headgate.insight.ledger import balance
from headgate.insight.ledger.by_id import by_id
from tests.support.declared import source_of
from tests.support.engine import Engine
from tests.support.failing import catch_up_despite
from tests.support.landing import Landing, split
from tests.support.replay_project import ask
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
      schema: {{id: string, site: string, levels: array<int>, at: timestamp}}
silver: {{clean: {{from: raw, explode: {{level: levels}}}}}}
gold:
  per_site:
    from: clean
    window: {{count: 5}}
    by: [site]
    where: level > 0
    measures:
      rows: count(*)
      total: sum(level)
      newest: last(level)
      from: min(at)
  in_all:
    from: clean
    window: {{count: {{size: 40}}}}
    measures: {{rows: count(*)}}
"""
SIZES = {"per_site": 5, "in_all": 40}
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
FILES = 5
PLACES = ("gold.staged", "gold.committed", "gold.committed:2")
EVERYTHING: dict[str, Any] = {"from": None, "to": None, "keys": {}}
PATCH = "json_merge_patch(value, '{\"levels\": [1, 2, 3, 4, 5, 6, 7]}')"


def declare(folder: Path, landing: Landing) -> Pipeline:
    file = folder / "readings.yml"
    file.write_text(DECLARATION.format(landing=landing.folder))
    return load(file)


def events(count: int, seed: int, name: str = "r") -> list[bytes]:
    """Most are of site ``a``: a batch has many windows of it. Some are of no site, some are copies
    of earlier ones, and some levels are no numbers. Their times are in any order."""
    chance, made = random.Random(seed), list[bytes]()
    for number in range(count):
        if made and chance.random() < 0.1:
            made.append(chance.choice(made[-5:]))
            continue
        at = NOON - chance.random() * timedelta(hours=5)
        levels: list[Any] = [chance.randrange(9) for _ in range(chance.randrange(4))]
        if chance.random() < 0.05:
            levels = ["high"]
        event = {"id": f"{name}-{number}", "site": chance.choice(["a", "a", "a", "b", "c", None])}
        made.append(json.dumps({**event, "levels": levels, "at": at.isoformat()}).encode())
    return made


def log_of(row: Row) -> tuple[int, int]:
    """The partition, and the load that a row belongs to."""
    return row["_partition"], min(row["_offset"] >> 56, 0)


def place(row: Row) -> tuple[int, int]:
    return row["_offset"], row["_item"]


def expected(engine: Engine, table: str) -> dict[Any, Any]:
    logs: dict[Any, list[Row]] = defaultdict(list)
    for row in sorted(read(engine.root, "silver/clean"), key=place):
        if table == "in_all" or row["level"] > 0:
            logs[log_of(row), row["site"] if table == "per_site" else None].append(row)
    found, size = {}, SIZES[table]
    for ((partition, _), site), rows in logs.items():
        for first in range(0, len(rows), size):
            part = rows[first : first + size]
            values: tuple[Any, ...] = (len(part),)
            if table == "per_site":
                newest = max(part, key=lambda row: (row["_event_time"], *place(row)))
                total = sum(row["level"] for row in part)
                values = (len(part), total, newest["level"], min(r["_event_time"] for r in part))
            found[(partition, *place(part[0]), site)] = (*values, len(part), len(part) == size)
    return found


def actual(engine: Engine, table: str) -> dict[Any, Any]:
    gold = read(engine.root, f"gold/{table}")
    names = ("rows", "total", "newest", "from") if table == "per_site" else ("rows",)
    identity = ("window_partition", "window_offset", "window_item")
    found = {
        (*(row[name] for name in identity), row.get("site")): tuple(
            row[name] for name in (*names, "window_rows", "final")
        )
        for row in gold
    }
    assert len(found) == len(gold)
    return found


def check(engine: Engine) -> None:
    for table in engine.pipeline.gold:
        assert actual(engine, table) == expected(engine, table), table
        assert not read(engine.root, f"late/{table}")
    assert {final for *_, final in actual(engine, "per_site").values()} == {True, False}
    assert balance(engine.layout, engine.pipeline).differences == ()
    assert by_id(engine.layout, engine.pipeline).findings == ()


def check_definition(engine: Engine) -> None:
    """As ``ledger --recompute``."""
    wanted = dict.fromkeys(engine.pipeline.gold, WHOLE)
    done = recompute(engine.spark, engine.layout, engine.pipeline, wanted, engine.clock())
    assert done.holds
    assert all(table.equal for table in done.tables)


def replay_refused(engine: Engine) -> int:
    """Correct all quarantined records."""
    records = RefusedRecords(engine.layout, engine.pipeline, source_of(engine.pipeline))
    refused = as_refused(records.rows(RefusedSelection()), lambda each: each.value or b"")
    count = ask(engine, list(patched_records(refused, PATCH)))
    engine.take_in()
    return count


def test_its_life(spark: SparkSession, tmp_path: Path) -> None:
    landing, archive = Landing(tmp_path / "landing"), Landing(tmp_path / "archive")
    landing.write_all(split(events(200, seed=3), FILES))
    pipeline = declare(tmp_path, landing)
    engine = Engine(spark, pipeline, tmp_path / "root")
    catch_up_despite(engine, PLACES)
    check(engine)
    savepoint = engine.savepoint()
    engine.drain()
    check(engine)
    assert final_up_to(engine.layout, pipeline, "per_site") is None

    # Copies continue a partition of their own, and history is a log of its own.
    assert replay_refused(engine)
    check(engine)
    engine.ingest(4)
    engine.catch_up()
    archive.write_all(split(events(40, seed=4, name="h"), 2))
    engine.begin_load(files=str(archive.folder))
    engine.load()
    engine.ingest(FILES)
    engine.operate("late_replay", table="per_site", **EVERYTHING)
    engine.catch_up()
    check(engine)
    logs = {log_of(row) for row in read(engine.root, "silver/clean")}
    assert logs == {(0, 0), (0, -1), (-1, 0)}
    assert replay_refused(engine), "in the history, too"
    check(engine)
    check_definition(engine)

    before = {table: actual(engine, table) for table in pipeline.gold}
    anew = RebuildRequest([f"gold/{name}" for name in pipeline.gold])
    rebuilt = Engine(spark, pipeline, engine.root, now=engine.now, anew=anew)
    rebuilt.catch_up()
    assert {table: actual(rebuilt, table) for table in pipeline.gold} == before
    rebuilt.restore(savepoint)
    restored = Engine(spark, pipeline, engine.root, now=rebuilt.now)
    restored.catch_up()
    assert {table: actual(restored, table) for table in pipeline.gold} == before
    check(restored)


def test_what_has_no_meaning_for_it_is_refused(tmp_path: Path) -> None:
    pipeline = declare(tmp_path, Landing(tmp_path / "landing"))
    table = pipeline.gold["per_site"]
    with pytest.raises(OtherDeclarationError, match="has no windows of time") as refused:
        require_windows(table)
    assert "--full-refresh gold.per_site" in str(refused.value.remedy)
    with pytest.raises(UsageError, match="has no windows of time") as ranged:
        require_ranges([table])
    assert "--recompute --table gold.per_site" in str(ranged.value.remedy)

    def wrong(old: str, new: str) -> str:
        with pytest.raises(DeclarationError) as found:
            load(pipeline.file, text=pipeline.text.replace(old, new, 1))
        return str(found.value)

    site = "    by: [site]\n"
    assert "has no meaning with 'window.count'" in wrong(site, f"{site}    allowed_lateness: 1 s\n")
    late = "    late: {replay_every: 1 day, within: 1 day}\n"
    assert "has no meaning with 'window.count'" in wrong(site, site + late)
    assert "has no meaning with 'count'" in wrong("{count: 5}", "{count: 5, time: arrival}")
    assert "are never divided; remove it" in wrong(site, f"{site}    salt: 4\n")
