"""What a pipeline would run."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from headgate.declaration.errors import DeclarationError
from headgate.declaration.model import Pipeline
from headgate.declaration.plan import describe, plan
from tests.support.several_sources import TWO

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
        "offset": "0 seconds",
        "windows_per_row": 1,
    }
    own = "customer orders revenue mean"
    assert list(gold["schema"]) == (
        f"window_start window_end {own} final revision updated_at".split()
    )
    assert gold["measures"]["revenue"] == {
        "function": "sum",
        "arguments": ["price"],
        "filter": None,
        "type": "decimal(28,2)",
        "state": "a sum, exact for integers and decimals",
    }
    assert gold["late"]["table"] == "late/sales"
    assert gold["late"]["schema"]["reason"] == "string"


def test_a_measure_is_shown_with_its_filter(base: str, read: Read) -> None:
    pipeline = read(base.replace("sum(price)", "max_by(price, day)  filter (where paid)"))
    shown = "measure  revenue = max_by(price, day) filter (where paid); keeps one value, its order"
    assert shown in describe(pipeline)
    assert "measure  orders = count(*); keeps a count" in describe(pipeline)


def test_rows_are_counted_by_a_count_without_a_filter(base: str, read: Read) -> None:
    counts = "few: count(*) filter (where paid)\n      orders: count(*)"
    for text, counter in ((counts, "orders"), (counts.split("\n", maxsplit=1)[0], None)):
        table = read(base.replace("orders: count(*)", text).replace("revenue / orders", "revenue"))
        assert table.gold["sales"].counter == counter


def test_reasons_for_quarantine_follow_the_declaration(base: str, read: Read) -> None:
    asked = base.replace("within: 10 minutes", "within: 10 minutes, differing: quarantine")
    asked = asked.replace("      schema:", "      unknown_fields: quarantine\n      schema:")
    assert " ".join(plan(read(asked))["quarantine"]["orders"]["reasons"]) == (
        "unparsable not_an_object missing_id missing_time unparsable_time future "
        "wrong_type unknown_field differing_duplicate"
    )
    bare = base.replace("      event_id: [order_id]\n", "")
    bare = bare.replace("      duplicates: {within: 10 minutes}\n", "")
    assert "missing_id" not in plan(read(bare))["quarantine"]["orders"]["reasons"]
    assert "duplicates are not detected" in describe(read(bare))


def test_rescued_fields_have_a_column(base: str, read: Read) -> None:
    text = base.replace("      schema:", "      unknown_fields: rescue\n      schema:")
    assert plan(read(text))["silver"]["clean"]["schema"]["_rescued"] == "string"


def test_silver_may_use_rescued_fields_and_gold_and_drop_may_not(base: str, read: Read) -> None:
    rescuing = base.replace("      schema:", "      unknown_fields: rescue\n      schema:")
    used = rescuing.replace("lower(note)", "get_json_object(_rescued, '$.note')")
    used = used.replace("where: price > 0", "where: price > 0 and _rescued is not null")
    assert plan(read(used))["silver"]["clean"]["schema"]["note"] == "string"
    refused = {"revenue: sum(price)": "revenue: min(_rescued)", "drop: [": "drop: [_rescued, "}
    for old, new in refused.items():
        with pytest.raises(DeclarationError, match="_rescued"):
            read(rescuing.replace(old, new))


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
    shifted = describe(read(base.replace("1 minute}", "{size: 1 day, offset: 6 hours}}")))
    assert "tumbling 1 day, offset 6 hours, 10 seconds allowed lateness" in shifted
    assert "fused: one process, bronze + silver + gold" in text


def test_what_is_expected_of_a_source_is_shown(base: str, read: Read) -> None:
    assert "expect  " not in describe(read(base))
    every, within = "expect_input_every: 600 s", "expect_event_time_within: 1 hour"
    text = base.replace("    record:", f"    {every}\n    {within}\n    record:")
    source = plan(read(text))["sources"]["orders"]
    assert source["expect_input_every"] == "10 minutes"
    assert source["expect_event_time_within"] == "1 hour"
    assert "  expect   input every 10 minutes, event time within 1 hour of now" in describe(
        read(text)
    )


def test_csv_and_zones_are_shown(base: str, read: Read) -> None:
    text = base.replace("format: json", "format: csv")
    text = text.replace("{column: ordered_at}", "{column: order_id, format: yyyy-MM-dd, zone: UTC}")
    source = plan(read(text))["sources"]["orders"]
    assert source["files"]["csv"] == {"header": True, "delimiter": ",", "multiline": False}
    assert source["event_time"]["zone"] == "UTC"


def test_kafka_is_shown_as_it_is_declared(
    kafka: str, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACE", "somewhere")
    text = kafka.replace("localhost", "${env:PLACE}", 1).replace("earliest", "{0: 12, 3: 0}")
    document = plan(read(text))
    assert json.loads(json.dumps(document)) == document
    assert "files" not in document["sources"]["orders"]
    assert document["sources"]["orders"]["kafka"] == {
        "servers": "${env:PLACE}:9092",
        "topic": "orders",
        "start": {"0": 12, "3": 0},
        "max_per_batch": 100_000,
        "min_per_batch": 1000,
        "batch_target": "10 seconds",
        "idle_after": "1 minute",
        "unreachable_after": "2 minutes",
        "isolation": "read_committed",
        "tombstones": "quarantine",
        "options": ["client.id"],
    }
    assert "from 12 of 0, 0 of 3" in describe(read(text))


def test_a_pattern_and_a_time_are_shown(
    kafka: str, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = kafka.replace("topic: orders", "pattern: o.*").replace("earliest", "2026-11-20 01:00Z")
    shown = plan(read(text))["sources"]["orders"]["kafka"]
    assert (shown["pattern"], shown["start"]) == ("o.*", "2026-11-20T01:00:00Z")
    assert "topic" not in shown
    monkeypatch.setenv("LIKE", "o.*")
    text = describe(read(text.replace("pattern: o.*", "pattern: ${env:LIKE}")))
    assert "topics like ${env:LIKE} at localhost:9092, read_committed, from 2026-11-20T" in text


def test_publications_are_shown(kafka: str, read: Read) -> None:
    shown = plan(read(kafka))["publish"]
    sink = {"servers": "localhost:9092", "topic": "finals", "options": ["client.id"]}
    assert shown == {"finals": {"from": "gold.sales", "when": "final", "kafka": sink}}
    late = plan(read(kafka.replace("gold.sales\n    when: final", "late.sales")))["publish"]
    assert (late["finals"]["from"], late["finals"]["when"]) == ("late.sales", None)


def test_a_person_can_read_of_kafka_too(kafka: str, read: Read) -> None:
    lines = describe(read(kafka)).splitlines()
    assert "  kafka    topic orders at localhost:9092, read_committed, from earliest" in lines
    batch = "at most 100000 records, down to 1000 if a batch takes longer than 10 seconds"
    assert f"  batch    {batch}" in lines
    assert "  idle     a partition after 1 minute" in lines
    at = lines.index("publish finals from gold.sales")
    assert lines[at + 1 :] == [
        "  kafka    topic finals at localhost:9092",
        "  rows     of final windows",
        "  options  client.id",
    ]


def test_salt_is_shown(base: str, read: Read) -> None:
    salted = read(base.replace("10 seconds", "10 seconds\n    salt: 8"))
    assert plan(salted)["gold"]["sales"]["salt"] == 8
    assert "  salt     8 parts of each key in the first step" in describe(salted)
    assert "  salt" not in describe(read(base))


@pytest.mark.parametrize(
    ("step", "shown"), [("auto", "auto"), ("90 s", "every 90 seconds"), ("1 d", "every 1 day")]
)
def test_a_step_is_shown(base: str, read: Read, step: str, shown: str) -> None:
    stepped = read(base.replace("10 seconds", f"10 seconds\n    step: {step}"))
    assert plan(stepped)["gold"]["sales"]["step"] == shown
    assert f"\n  step     {shown}\n" in describe(stepped)
    assert plan(read(base))["gold"]["sales"]["step"] is None
    assert "\n  step" not in describe(read(base))


def test_a_plan_of_several_sources_names_each(read: Read) -> None:
    text = TWO.replace("event_id: [id]\n      ", "", 1)
    pipeline = read(text.replace("duplicates: {within: 1 hour}\n      ", "", 1))
    reasons = {name: each["reasons"] for name, each in plan(pipeline)["quarantine"].items()}
    assert ("missing_id" in reasons["orders"], "missing_id" in reasons["clicks"]) == (False, True)
    lines = describe(pipeline).splitlines()
    for source in ("orders", "clicks"):
        assert {f"source {source}", f"bronze/{source}", f"quarantine/{source}"} <= {*lines}
    assert "quarantine" not in lines
