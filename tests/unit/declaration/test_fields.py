"""Columns whose fields have other names, paths into structs, and how times are read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.declaration.errors import DeclarationProblem
from headgate.declaration.model import Column, EventTime, Pipeline, Record, TimeForm
from headgate.declaration.plan import describe, plan
from headgate.declaration.types import STRING, TIMESTAMP

Read = Callable[[str], Pipeline]
Refuse = Callable[[str], tuple[DeclarationProblem, ...]]

PAYLOAD = "payload: struct<id string, at timestamp, ns bigint>"


def record_of(pipeline: Pipeline) -> Record:
    return pipeline.sources["orders"].record


def test_a_column_reads_the_field_that_it_names(base: str, read: Read) -> None:
    text = base.replace("order_id: string", 'order_id: {field: "order id", type: string}')
    text = text.replace("note: string", "note: {type: string, field: note}")
    columns = {column.name: column for column in record_of(read(text)).schema}
    assert columns["order_id"] == Column("order_id", STRING, "order id")
    assert columns["note"] == Column("note", STRING)
    assert (columns["order_id"].in_record, columns["note"].in_record) == ("order id", "note")


@pytest.mark.parametrize(
    ("name", "type_", "line"),
    [
        ("the id", "string", 'the_id: {field: "the id", type: string}'),
        ("@timestamp", "timestamp", 'timestamp: {field: "@timestamp", type: timestamp}'),
        ("user.id", "bigint", 'user_id: {field: "user.id", type: bigint}'),
        ("größe", "decimal(9,2)", 'grosse: {field: "größe", type: "decimal(9,2)"}'),
        ("_id", "string", 'id: {field: "_id", type: string}'),
        ("$cost", "array<int>", 'cost: {field: "$cost", type: array<int>}'),
        ("🚀", "string", 'value: {field: "🚀", type: string}'),
        ("", "string", 'value: {field: "", type: string}'),
        ("1st", "string", 'value: {field: "1st", type: string}'),
        ('a"b', "string", 'a_b: {field: "a\\"b", type: string}'),
        (" a ", "{type: string}", 'a: {field: " a ", type: string}'),
    ],
)
def test_the_line_to_write_for_a_name_that_no_column_can_have(
    name: str, type_: str, line: str, base: str, read: Read, refuse: Refuse
) -> None:
    quoted = name.replace('"', '\\"')
    (problem,) = refuse(base.replace("quantity: int", f'"{quoted}": {type_}'))
    assert problem.message.endswith(f"; write {line}")
    assert problem.nearest is None
    columns = record_of(read(base.replace("quantity: int", line))).schema
    assert columns[3].in_record == name


def test_a_field_that_was_declared_as_a_column_is_named_by_its_new_column(
    base: str, refuse: Refuse
) -> None:
    text = base.replace("quantity: int", "user.id: int").replace("[order_id]", "[user.id]")
    problems = refuse(text)
    assert [problem.nearest for problem in problems] == ["user_id", None]
    assert problems[1].message.endswith('write user_id: {field: "user.id", type: int}')


def test_only_another_field_changes_the_digest(base: str, read: Read) -> None:
    same = base.replace("note: string", "note: {type: string, field: note}")
    same = same.replace("ordered_at: timestamp", "ordered_at: {type: timestamp, format: iso}")
    other = base.replace("note: string", "note: {type: string, field: Note}")
    zoned = base.replace("day: date", "day: {type: timestamp, zone: UTC}")
    digests = [read(text).digest for text in (base, same, other, zoned)]
    assert digests[0] == digests[1]
    assert len({*digests}) == 3


def test_names_of_columns_and_of_fields_are_apart(base: str, read: Read) -> None:
    text = base.replace("quantity: int", "quantity: {field: weight, type: int}")
    text = text.replace("weight: double", "weight: {field: quantity, type: double}")
    columns = record_of(read(text)).schema
    assert [column.in_record for column in columns[3:5]] == ["weight", "quantity"]


def test_the_id_and_the_time_may_be_fields_inside_of_structs(base: str, read: Read) -> None:
    text = base.replace("quantity: int", PAYLOAD).replace("[order_id]", "[order_id, payload.id]")
    record = record_of(read(text.replace("column: ordered_at", "column: payload.at")))
    assert record.event_id == ("order_id", "payload.id")
    assert record.event_time == EventTime("payload.at")
    millis = "column: payload.ns, format: epoch_nanos"
    record = record_of(read(text.replace("column: ordered_at", millis)))
    assert record.event_time == EventTime("payload.ns", "epoch_nanos")


@pytest.mark.parametrize(
    ("column", "message", "nearest"),
    [
        ("payload.att", "'payload' has no field 'att'", "payload.at"),
        ("payload.id.x", "'payload.id' is a string, not a struct", None),
        ("payload.at, zone: UTC", "belongs to the column 'payload': write it in schema", None),
        ("payload", "'payload' is a struct", None),
    ],
)
def test_a_path_has_to_lead_to_a_value(
    column: str, message: str, nearest: str | None, base: str, refuse: Refuse
) -> None:
    text = base.replace("quantity: int", PAYLOAD)
    (problem,) = refuse(text.replace("column: ordered_at", f"column: {column}"))
    assert problem.message.startswith(message)
    assert problem.nearest == nearest


def test_the_form_of_the_event_time_is_written_in_one_of_two_places(
    base: str, read: Read, refuse: Refuse
) -> None:
    keys = "format: iso, zone: Europe/Paris, ambiguous: later"
    there = base.replace("column: ordered_at", f"column: ordered_at, {keys}")
    here = base.replace("ordered_at: timestamp", f"ordered_at: {{type: timestamp, {keys}}}")
    assert read(there) == read(here.replace("\n\n", "\n"))
    record = record_of(read(here))
    assert record.event_time == EventTime("ordered_at", "iso", "Europe/Paris", "later")
    assert record.times_of(record.schema[-1]) == TimeForm("iso", "Europe/Paris", "later")
    both = here.replace("column: ordered_at", "column: ordered_at, format: iso")
    (problem,) = refuse(both)
    assert problem.message == (
        "is a part of the column 'ordered_at' in schema, too; remove one of them"
    )


def test_any_column_with_timestamps_has_a_form(base: str, read: Read) -> None:
    text = base.replace(
        "quantity: int", "seen: {type: array<timestamp>, format: epoch_millis}"
    ).replace("day: date", "day: {type: timestamp, format: dd/MM/yyyy, zone: Asia/Tokyo}")
    record = record_of(read(text))
    assert record.schema[3].times == TimeForm("epoch_millis")
    assert record.schema[7] == Column("day", TIMESTAMP, None, TimeForm("dd/MM/yyyy", "Asia/Tokyo"))


def test_the_plan_shows_fields_and_how_times_are_read(base: str, read: Read) -> None:
    text = base.replace("note: string", 'note: {field: "the note", type: string}')
    text = text.replace("day: date", "day: {type: timestamp, format: dd/MM/yyyy, zone: Asia/Tokyo}")
    text = text.replace("column: ordered_at", "column: ordered_at, zone: Europe/Paris")
    shown = describe(read(text)).splitlines()
    twice = "the earlier of two instants of a local time"
    assert f"  time     ordered_at (iso, Europe/Paris: {twice})" in shown
    assert f"  time     day (dd/MM/yyyy, Asia/Tokyo: {twice})" in shown
    assert "  field    note is 'the note'" in shown
    source = plan(read(text))["sources"]["orders"]
    assert source["fields"] == {"note": "the note"}
    assert source["event_time"] == {
        "column": "ordered_at",
        "format": "iso",
        "zone": "Europe/Paris",
        "ambiguous": "earlier",
    }


LOCAL = "column: order_id, format: 'yyyy-MM-dd HH:mm', zone: Europe/Paris"


@pytest.mark.parametrize(
    ("changes", "warns"),
    [
        ({"column: ordered_at": LOCAL}, True),
        ({"column: ordered_at": f"{LOCAL}, ambiguous: later"}, True),
        ({"column: ordered_at": f"{LOCAL}, ambiguous: quarantine"}, False),
        ({"column: ordered_at": LOCAL.replace("Paris", "London")}, True),
        ({"column: ordered_at": LOCAL.replace("Europe/Paris", "Etc/GMT+5")}, False),
        ({"column: ordered_at": LOCAL, "[order_id]": "[note]"}, False),
        ({"column: ordered_at": LOCAL, "      duplicates: {within: 10 minutes}\n": ""}, False),
        ({"[order_id]": "[note, ordered_at]"}, False),
        (
            {"[order_id]": "[ordered_at]", "column: ordered_at": "column: ordered_at, zone: Japan"},
            False,
        ),
        (
            {
                "[order_id]": "[note, ordered_at]",
                "column: ordered_at": "column: ordered_at, zone: America/Sao_Paulo",
            },
            True,
        ),
        (
            {
                "[order_id]": "[day]",
                "day: date": "day: {type: timestamp, zone: Australia/Lord_Howe}",
            },
            True,
        ),
    ],
)
def test_ids_with_a_local_time_that_the_clocks_repeat_are_warned_of(
    changes: dict[str, str], warns: bool, base: str, read: Read
) -> None:
    text = base
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    found = plan(read(text))["sources"]["orders"]["warnings"]
    assert bool(found) == warns
    assert ("  warning  " in describe(read(text))) == warns
