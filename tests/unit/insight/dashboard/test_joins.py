"""The page of a join: its silver tables, its late rows, and what was rejected on their way."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from headgate.insight.dashboard.questions.about import paths_behind
from tests.support.charted import NOON, SCHEMAS, STATUS, TIME, Charted, rejected_row
from tests.support.joins import DECLARATION
from tests.support.served import served

CONDITION = "within: 1 hour\n      where: purchases.amount > 3"
TEXT = DECLARATION.replace("within: 1 hour", CONDITION)
RULES = "expectations: [{id: some, expect: amount > 0}]"
CLICK = pa.struct([("id", pa.string()), ("input", pa.string())])
OF_JOIN = {
    "bronze/raw": SCHEMAS["bronze/orders"],
    "quarantine/raw": SCHEMAS["quarantine/orders"],
    "silver/clicks": SCHEMAS["silver/clean"],
    "silver/purchases": SCHEMAS["silver/clean"],
    "rejected/purchases": SCHEMAS["rejected/clean"],
    "late/bought": [
        *[("input", pa.string()), ("_event_id", pa.string()), ("_partition", pa.int32())],
        *[("_offset", pa.int64()), ("_item", pa.int32()), ("_clock", TIME)],
        *[("_event_time", TIME), ("late_seconds", pa.float64()), ("reason", pa.string())],
        *[("replayed", pa.int64()), ("clicks", CLICK), ("purchases", CLICK)],
    ],
    "gold/bought": [
        *[("event_time", TIME), ("row_id", pa.string()), ("who", pa.string())],
        *[("paid", pa.int32()), *STATUS],
    ],
    "_headgate/files/raw": SCHEMAS["_headgate/files/orders"],
}


def late(minute: int, table: str) -> dict[str, Any]:
    at = NOON + timedelta(minutes=minute)
    row = {"_event_id": f"e{minute}", "_partition": 0, "_offset": minute, "_item": 0}
    why = {"late_seconds": 60.0 * minute, "reason": "late", "replayed": None}
    other = {"clicks": None, "purchases": None, table: {"id": "Kim", "input": "Kim"}}
    return {"input": table, **row, "_clock": at, "_event_time": at, **why, **other}


@pytest.fixture
def shop(tmp_path: Path) -> Charted:
    (tmp_path / "expectations").mkdir()
    (tmp_path / "expectations/some.yml").write_text(RULES)
    text = TEXT.replace("{buyer: user},", "{buyer: user}, expectations: some,")
    made = Charted(tmp_path, text, OF_JOIN)
    made.add("bronze/raw", [], read=20)
    made.add("quarantine/raw", [])
    made.add("silver/clicks", [], silver=6, filtered=14)
    made.add("silver/purchases", [], silver=3, filtered=13, rejected=4)
    made.add("rejected/purchases", [rejected_row(0, "some")], rejected=4)
    made.add("late/bought", [late(1, "clicks"), late(2, "purchases")], late=2)
    row = {"event_time": NOON, "row_id": "a", "who": "ann", "paid": 4}
    made.add("gold/bought", [{**row, "revision": 0, "updated_at": NOON}], pairs=9, late=2)
    return made


@pytest.fixture
def client(shop: Charted) -> Iterator[httpx.Client]:
    with served(shop.file, shop.root, login=False) as site, site.client() as client:
        yield client


def test_its_page_says_what_it_is(client: httpx.Client) -> None:
    found = client.get("/api/gold/shop/bought").json()
    assert found["operator"] == (
        "join: inner, purchases at most 1 hour after clicks, on user; where: purchases.amount > 3"
    )
    assert (found["read"], found["rejected"], found["rules_of"]) == (20, 4, ["purchases"])
    assert found["late_share"] == pytest.approx(2 / 9)


def test_a_late_row_is_that_of_one_table(client: httpx.Client) -> None:
    """The name of the table is shown, and the values of the rows are masked."""
    found = client.get("/api/late/shop/bought").json()
    rows = [dict(zip(found["columns"], cells, strict=True)) for cells in found["cells"]]
    assert [(row["input"], row["_offset"]) for row in rows] == [("purchases", "2"), ("clicks", "1")]
    assert "Kim" not in str(rows)
    assert rows[0]["clicks"] is None
    assert found["seconds"]["max"] == 120


def test_its_page_reads_all_of_its_tables(shop: Charted) -> None:
    assert paths_behind(shop.shown(), "bought") == (
        *("gold/bought", "late/bought", "silver/clicks", "silver/purchases"),
        "quarantine/raw",
    )
