"""What a valid declaration becomes."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from headgate.declaration.errors import DeclarationError, DeclarationProblem
from headgate.declaration.load import load
from headgate.declaration.model import Column, Derived, Duplicates, EventTime, Pipeline
from headgate.declaration.types import BIGINT, INT, STRING, Decimal
from headgate.errors import HeadgateError
from headgate.flow.gold.operators.windows import Windows
from tests.support.declared import files_of, source_of

Read = Callable[[str], Pipeline]
Refuse = Callable[[str], tuple[DeclarationProblem, ...]]

ROOT = Path(__file__).parents[3]
SHIPPED = sorted((ROOT / "pipelines").rglob("*.yml"))
# Spark has to check the queries of Nexmark: tests/spark/test_nexmark.py loads them.
OTHERS = ("dashboards", "expectations", "nexmark")
EXAMPLES = [file for file in SHIPPED if file.parent.name not in OTHERS]
FORMAT = "format: json"


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_every_declaration_that_ships_loads(file: Path) -> None:
    assert load(file).file == file


def test_defaults_are_those_of_the_model(base: str, read: Read) -> None:
    text = base.replace("      duplicates: {within: 10 minutes}\n", "").replace("jobs: fused\n", "")
    pipeline = read(text)
    files, record = files_of(pipeline), source_of(pipeline).record
    assert (files.order, files.settle, files.max_files_per_batch) == ("name", timedelta(0, 2), 1000)
    assert files.max_bytes_per_batch == 64 * 1024 * 1024
    assert (record.duplicates, record.future_after) == (None, timedelta(hours=1))
    assert record.event_time == EventTime("ordered_at", "iso", None)
    assert pipeline.jobs == "fused"


def test_every_key_of_a_source_is_read(base: str, read: Read) -> None:
    text = base.replace(
        FORMAT,
        "format: csv, order: modified, settle: 0 s, max_files_per_batch: 5, "
        "max_bytes_per_batch: 3 KB, csv: {header: false, delimiter: ';', multiline: true}",
    )
    text = text.replace("within: 10 minutes", "within: 1 day, differing: keep")
    text = text.replace("      schema:", "      future_after: 2 hours\n      schema:")
    text = text.replace("      schema:", "      unknown_fields: rescue\n      schema:")
    pipeline = read(text)
    files, record = files_of(pipeline), source_of(pipeline).record
    assert (files.format, files.order) == ("csv", "modified")
    assert (files.settle, files.max_files_per_batch) == (timedelta(0), 5)
    assert (files.max_bytes_per_batch, files.csv_header) == (3072, False)
    assert files.csv_fields == tuple(column.name for column in source_of(pipeline).record.schema)
    assert (files.csv_delimiter, files.csv_multiline) == (";", True)
    assert record.duplicates == Duplicates(timedelta(days=1), "keep")
    assert record.future_after == timedelta(hours=2)
    assert record.unknown_fields == "rescue"


def test_silver_columns_replace_add_and_drop(base: str, read: Read) -> None:
    text = base.replace("note: lower(note)", "note: lower(note)\n      total: price * quantity")
    table = read(text).silver["clean"]
    assert table.columns == (
        Derived("note", "lower(note)", STRING),
        Derived("total", "price * quantity", Decimal(29, 2)),
    )
    assert Column("total", Decimal(29, 2)) in table.schema
    assert table.drop == ("weight",)
    assert "weight" not in [column.name for column in table.schema]
    assert table.where == "price > 0"


def test_a_condition_sees_what_columns_made_and_what_is_dropped(base: str, read: Read) -> None:
    text = base.replace("note: lower(note)", "big: price > 100")
    assert read(text.replace("price > 0", "big and weight > 0")).silver["clean"].where


def test_gold_groups_by_columns_or_expressions(base: str, read: Read) -> None:
    assert read(base).gold["sales"].by == (Derived("customer", "customer", BIGINT),)
    grouped = "\n      when: year(ordered_at)\n      who: customer"
    mapped = read(base.replace(" [customer]", grouped))
    assert mapped.gold["sales"].by == (
        Derived("when", "year(ordered_at)", INT),
        Derived("who", "customer", BIGINT),
    )
    assert read(base.replace("    by: [customer]\n", "")).gold["sales"].by == ()


def test_a_column_named_like_a_word_of_sql_is_quoted(base: str, read: Read) -> None:
    text = base.replace("quantity: int", "end: int").replace("[customer]", "[end]")
    assert read(text).gold["sales"].by == (Derived("end", "`end`", INT),)


CAMEL = {"order_id": "orderId", "customer": "customerId", "ordered_at": "orderedAt"}
CAMEL |= {"weight": "grossWeight", "note": "Note", "quantity": "End"}


def test_fields_are_named_as_producers_name_them(base: str, read: Read) -> None:
    text = base.replace("price > 0", "price > 0 and `End` > 1").replace("[customer]", "[End]")
    for snake, camel in CAMEL.items():
        text = text.replace(snake, camel)
    shop = read(text)
    record = source_of(shop).record
    assert (record.event_id, record.event_time.column) == (("orderId",), "orderedAt")
    clean = shop.silver["clean"]
    assert clean.columns == (Derived("Note", "lower(Note)", STRING),)
    assert (clean.drop, clean.where) == (("grossWeight",), "price > 0 and `End` > 1")
    assert [c.name for c in clean.schema][:3] == ["orderId", "customerId", "price"]
    assert shop.gold["sales"].by == (Derived("End", "`End`", INT),)


def test_a_field_may_get_its_name_in_another_case(base: str, read: Read) -> None:
    """``note`` is dropped, so ``Note`` cannot be confused with another column of the table."""
    text = base.replace("note: lower(note)", "Note: lower(note)")
    clean = read(text.replace("[weight]", "[weight, note]")).silver["clean"]
    assert {c.name for c in clean.schema} & {"Note", "note"} == {"Note"}


def test_windows(base: str, read: Read) -> None:
    minute = timedelta(minutes=1)
    assert read(base).gold["sales"].operator == Windows(minute, minute)
    hopping = base.replace("{tumbling: 1 minute}", "{hopping: {size: 5 min, every: 60 s}}")
    assert read(hopping).gold["sales"].operator == Windows(5 * minute, minute)


def test_gold_may_be_left_out_and_lateness_may_be_none(base: str, read: Read) -> None:
    assert read(base[: base.index("gold:")]).gold == {}
    assert read(base.replace("10 seconds", "0 s")).gold["sales"].allowed_lateness == timedelta(0)


def test_a_pipeline_can_be_sent_to_another_process(base: str, read: Read) -> None:
    pipeline = read(base)
    assert pickle.loads(pickle.dumps(pipeline)) == pipeline


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("{column: customer, format: epoch_millis}", EventTime("customer", "epoch_millis")),
        ("{column: customer, format: epoch_seconds}", EventTime("customer", "epoch_seconds")),
        ("{column: order_id}", EventTime("order_id")),
        (
            "{column: order_id, format: 'dd/MM/yyyy HH:mm', zone: Europe/Paris}",
            EventTime("order_id", "dd/MM/yyyy HH:mm", "Europe/Paris"),
        ),
        (
            "{column: order_id, format: \"yyyy-MM-dd'T'HH:mm:ssXXX\"}",
            EventTime("order_id", "yyyy-MM-dd'T'HH:mm:ssXXX"),
        ),
    ],
)
def test_formats_of_event_time(time: str, expected: EventTime, base: str, read: Read) -> None:
    text = base.replace("{column: ordered_at}", time)
    assert source_of(read(text)).record.event_time == expected


def test_a_relative_path_starts_at_the_project(base: str, tmp_path: Path) -> None:
    file = tmp_path / "project" / "pipelines" / "shop" / "shop.yml"
    file.parent.mkdir(parents=True)
    file.write_text(base, encoding="utf-8")
    assert files_of(load(file)).path == str(tmp_path / "project" / "landing" / "orders")


def test_without_a_project_it_starts_beside_the_declaration(
    base: str, read: Read, tmp_path: Path
) -> None:
    assert files_of(read(base)).path == str(tmp_path / "landing" / "orders")


@pytest.mark.parametrize("path", ["/data/orders", "s3://bucket/orders"])
def test_absolute_paths_and_uris_stay(path: str, base: str, read: Read) -> None:
    assert files_of(read(base.replace("landing/orders", path))).path == path


def test_a_missing_file_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError, match="No such file") as caught:
        load(tmp_path / "none.yml")
    assert caught.value.exit_code == 2
    assert isinstance(caught.value, HeadgateError)


def test_bytes_that_are_not_utf_8_are_reported_with_their_line(tmp_path: Path) -> None:
    file = tmp_path / "shop.yml"
    file.write_bytes(b"pipeline: shop\njobs: \xff\n")
    with pytest.raises(DeclarationError) as caught:
        load(file)
    assert [(p.line, p.message) for p in caught.value.problems] == [(2, "is not UTF-8 text")]


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "shop\n", "- shop\n", "[" * 600, "#" * 2_000_000]
)
def test_a_file_that_is_no_map_is_an_error(text: str, refuse: Refuse) -> None:
    assert len(refuse(text)) == 1


def test_the_text_of_an_error_ends_with_the_command_to_type(base: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.yml"
    file.write_text(base.replace("jobs: fused", "job: fused"), encoding="utf-8")
    with pytest.raises(DeclarationError) as caught:
        load(file)
    assert str(caught.value).splitlines() == [
        f'{file}:37: job: unknown key (did you mean "jobs"?)',
        f"headgate plan {file}",
    ]
