"""What a pipeline would run."""

from __future__ import annotations

import json
from collections.abc import Callable

from headgate.spec.model import Pipeline
from headgate.spec.plan import describe, plan

Read = Callable[[str], Pipeline]


def test_a_plan_is_a_document(base: str, read: Read) -> None:
    document = plan(read(base))
    assert json.loads(json.dumps(document)) == document
    assert list(document["sources"]) == ["orders"]
    assert document["bronze"]["orders"]["table"] == "bronze/orders"
    assert document["silver"]["clean"]["schema"]["_clock"] == "timestamp"
    assert "weight" not in document["silver"]["clean"]["schema"]
    assert document["jobs"]["processes"] == [["bronze", "silver", "gold"]]


def test_gold_has_its_window_schema_state_and_late_table(base: str, read: Read) -> None:
    gold = plan(read(base))["gold"]["sales"]
    assert gold["window"] == {
        "shape": "tumbling",
        "size": "1 minute",
        "every": "1 minute",
        "windows_per_row": 1,
    }
    own = "customer orders revenue mean"
    assert list(gold["schema"]) == (
        f"window_start window_end {own} final revision updated_at".split()
    )
    assert gold["measures"]["revenue"] == {
        "function": "sum",
        "argument": "price",
        "type": "decimal(28,2)",
        "state": "a sum, exact for integers and decimals",
    }
    assert gold["late"]["table"] == "late/sales"
    assert gold["late"]["schema"]["reason"] == "string"


def test_reasons_for_quarantine_follow_the_declaration(base: str, read: Read) -> None:
    asked = base.replace("within: 10 minutes", "within: 10 minutes, differing: quarantine")
    asked = asked.replace("      schema:", "      unknown_fields: quarantine\n      schema:")
    assert " ".join(plan(read(asked))["quarantine"]["reasons"]) == (
        "unparsable not_an_object missing_id missing_time unparsable_time future "
        "differing_duplicate wrong_type unknown_field"
    )
    bare = base.replace("      event_id: [order_id]\n", "")
    bare = bare.replace("      duplicates: {within: 10 minutes}\n", "")
    assert "missing_id" not in plan(read(bare))["quarantine"]["reasons"]
    assert "duplicates are not looked for" in describe(read(bare))


def test_rescued_fields_have_a_column(base: str, read: Read) -> None:
    text = base.replace("      schema:", "      unknown_fields: rescue\n      schema:")
    assert plan(read(text))["silver"]["clean"]["schema"]["_rescued"] == "string"


def test_per_layer_is_three_processes(base: str, read: Read) -> None:
    document = plan(read(base.replace("jobs: fused", "jobs: per_layer")))
    assert document["jobs"]["processes"] == [["bronze"], ["silver"], ["gold"]]


def test_a_person_can_read_it(base: str, read: Read) -> None:
    text = describe(
        read(base.replace("{tumbling: 1 minute}", "{hopping: {size: 1 d, every: 1 h}}"))
    )
    assert "gold/sales from clean" in text
    assert "hopping 1 day every 1 hour, 24 windows a row, 10 seconds allowed lateness" in text
    assert "measure  revenue = sum(price); keeps a sum" in text
    assert "late     late/sales" in text
    assert "fused: one process, bronze + silver + gold" in text


def test_csv_and_zones_are_shown(base: str, read: Read) -> None:
    text = base.replace("format: json", "format: csv")
    text = text.replace("{column: ordered_at}", "{column: order_id, format: yyyy-MM-dd, zone: UTC}")
    source = plan(read(text))["sources"]["orders"]
    assert source["files"]["csv"] == {"header": True, "delimiter": ",", "multiline": False}
    assert source["event_time"]["zone"] == "UTC"
