"""A lake that an older version has written is continued as if nothing had changed."""

from __future__ import annotations

import json
import os
from operator import itemgetter
from pathlib import Path
from zipfile import ZipFile

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.driver.task import RebuildRequest
from headgate.history.loads import requests
from headgate.insight.ledger import balance
from headgate.insight.ledger.by_id import by_id
from headgate.lake.storage.format import FORMAT
from tests.support.engine import Engine
from tests.support.tables import read

pytestmark = pytest.mark.spark

STORED = Path(__file__).parents[1] / "data" / f"lake-of-format-{FORMAT}.zip"


def test_copies_of_what_is_stored_are_duplicates(spark: SparkSession, tmp_path: Path) -> None:
    with ZipFile(STORED) as archive:
        archive.extractall(tmp_path)
    declared, root = load(tmp_path / "pipelines/shop.yml"), tmp_path / "lake"
    stored = sorted(read(root, "bronze/orders", "shop"), key=itemgetter("offset"))
    new = json.loads(next(row["value"] for row in stored if row["reason"] is None))
    sent = [*(row["value"] for row in stored), json.dumps(new | {"order_id": "new"}).encode()]
    landing = tmp_path / "landing/orders/again.json"
    landing.parent.mkdir(parents=True)
    landing.write_bytes(b"\n".join(sent))
    arrived = max(row["ingested_at"] for row in stored).timestamp()
    os.utime(landing, (arrived, arrived))

    engine = Engine(spark, declared, root).run_all()

    rows = sorted(read(root, "bronze/orders", "shop"), key=itemgetter("offset"))
    before, again = rows[: len(stored)], rows[len(stored) :]
    assert [row["value"] for row in again] == sent
    known = {row["event_id"] for row in before if row["reason"] is None}
    for old, copy in zip(before, again, strict=False):
        same = ("event_id", "event_time", "record", "reason", "reason_column")  # not their words
        assert {name: copy[name] for name in same} == {name: old[name] for name in same}
        assert copy["duplicate"] == (copy["event_id"] in known)
    assert (again[-1]["event_id"], again[-1]["duplicate"]) == ("new", False)
    account, proof = balance(engine.layout, declared), by_id(engine.layout, declared)
    assert (account.balanced, account.read, proof.findings) == (True, 2 * len(stored) + 1, ())
    assert account.differing == 0


def test_a_load_stops_where_late_rows_cannot_be_marked_and_goes_on_after_a_rebuild(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Older versions have made late tables without a column for what is replayed."""
    with ZipFile(STORED) as archive:
        archive.extractall(tmp_path)
    declared, root = load(tmp_path / "pipelines/shop.yml"), tmp_path / "lake"
    (tmp_path / "landing/orders").mkdir(parents=True)
    stored = [row for row in read(root, "bronze/orders", "shop") if row["reason"] is None]
    sent = [json.loads(row["value"]) | {"order_id": f"old-{n}"} for n, row in enumerate(stored)]
    history = tmp_path / "archive"
    history.mkdir()
    (history / "a.json").write_text("\n".join(map(json.dumps, sent)))
    engine = Engine(spark, declared, root)
    engine.begin_load(files=str(history))
    engine.load()
    (request,) = requests.all_of(engine.layout)
    assert (request.wish, "cannot mark what is replayed" in request.why) == ("stopped", True)
    engine.start()
    assert not engine.loading().is_open()
    engine.catch_up()
    waiting = len(read(root, "late/sales_per_hour", "shop"))
    assert waiting

    rebuild = RebuildRequest(("gold/sales_per_hour",))
    engine = Engine(spark, declared, root, now=engine.now, anew=rebuild)
    engine.catch_up()
    requests.change(engine.layout, request, wish="open", why="")
    engine.load()
    assert [each.wish for each in requests.all_of(engine.layout)] == ["done"]
    late = read(root, "late/sales_per_hour", "shop")
    assert all(row["replayed"] for row in late if row["_offset"] < 0)
    assert any(row["_offset"] < 0 for row in late)
    assert balance(engine.layout, declared).balanced
    assert by_id(engine.layout, declared).findings == ()
