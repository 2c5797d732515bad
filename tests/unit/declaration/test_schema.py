"""The schema for editors agrees with the loader about the shape of a declaration."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from headgate.declaration.names import COLUMN_PATTERN, NAME_PATTERN
from headgate.declaration.reference.page import (
    DOCUMENT,
    EXAMPLE,
    QUALITY,
    SCHEMA,
    expectations,
    reference,
    with_tables,
)
from headgate.declaration.reference.schema import json_schema, json_text
from headgate.declaration.suites.rows import ROW_EXPECTATIONS
from tests.support.operators import text_of
from tests.unit.declaration.test_load import EXAMPLES, ROOT
from tests.unit.declaration.test_wrong_declarations import KEYS, NEXT, Wrong

VALIDATOR = jsonschema.Draft202012Validator(json_schema())


def parsed(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_it_accepts_what_ships(file: Path) -> None:
    VALIDATOR.validate(parsed(file.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "wrong", [*KEYS[:12], *NEXT], ids=lambda wrong: f"{wrong.key}-{wrong.new}"[:60]
)
def test_it_refuses_wrong_keys(wrong: Wrong, base: str) -> None:
    VALIDATOR.validate(parsed(base))
    assert not VALIDATOR.is_valid(parsed(base.replace(wrong.old, wrong.new, 1)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1 minute}", "1 minuet}"),
        ("[customer]", "customer"),
        ("decimal(18,2)", "money"),
        ("pipeline: shop", "pipeline: Shop"),
        ("revenue: sum", "netRevenue: sum"),
        ("quantity: int", "unit-count: int"),
        ("format: json", "format: json, max_files_per_batch: 0"),
        ("{tumbling: 1 minute}", "{}"),
    ],
)
def test_it_refuses_wrong_values(old: str, new: str, base: str) -> None:
    assert not VALIDATOR.is_valid(parsed(base.replace(old, new)))


def test_it_accepts_columns_in_both_cases(base: str) -> None:
    text = base.replace("order_id", "orderId").replace("ordered_at", "orderedAt")
    text = text.replace("note: lower", "Note: lower").replace("[weight]", "[grossWeight]")
    VALIDATOR.validate(parsed(text.replace("[customer]", "{customerId: customer}")))


@pytest.mark.parametrize("window", ["{tumbling: 1 minute, time: arrival}", "{count: 100}"])
def test_a_window_without_late_rows_needs_no_lateness(window: str) -> None:
    text = text_of(f"window: {window}")
    VALIDATOR.validate(parsed(text))
    needs = text_of("window: {tumbling: 1 minute}")
    assert not VALIDATOR.is_valid(parsed(needs))


def test_it_accepts_placeholders_where_they_are_resolved(base: str) -> None:
    text = base.replace("format: json", "format: json, max_bytes_per_batch: '${env:SIZE}'")
    VALIDATOR.validate(parsed(text))


def test_it_accepts_kafka_at_both_ends(kafka: str) -> None:
    VALIDATOR.validate(parsed(kafka))
    VALIDATOR.validate(parsed(kafka.replace("earliest", "{0: 12}").replace("gold.", "late.")))
    VALIDATOR.validate(parsed(kafka.replace("earliest", "'2026-11-20T00:00:00Z'")))
    options = "ssl.key.password: '${env:X}'\n        check.crcs: true\n        retries: 3"
    VALIDATOR.validate(parsed(kafka.replace("client.id: shop", options)))
    VALIDATOR.validate(parsed(kafka.replace("localhost:9092", "'${env:HOST}'")))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "    kafka:\n      servers",
            "    files: {path: x, format: json}\n    kafka:\n      servers",
        ),
        ("      topic: orders\n", "      topic: orders\n      pattern: o.*\n"),
        ("      topic: orders\n", ""),
        ("      topic: orders\n", "      topic: my orders\n"),
        ("localhost:9092", "localhost"),
        ("earliest", "first"),
        ("earliest", "{p: 1}"),
        ("client.id: shop", "group.id: shop"),
        ("client.id: shop", "ssl.key.password: hunter2"),
        ("client.id: shop", "client.id: [shop]"),
        ("client.id: shop", "Client.Id: shop"),
        ("      topic: finals\n", ""),
        ("when: final", "when: ever"),
        ("10 seconds", "10 seconds\n    salt: 1"),
        ("10 seconds", "10 seconds\n    step: often"),
    ],
)
def test_it_refuses_what_is_wrong_of_kafka(old: str, new: str, kafka: str) -> None:
    assert old in kafka
    assert not VALIDATOR.is_valid(parsed(kafka.replace(old, new, 1)))


def test_what_ships_is_up_to_date() -> None:
    """If this fails, run: python -m headgate.declaration.reference.page"""
    assert (ROOT / SCHEMA).read_text(encoding="utf-8") == json_text()
    example = (ROOT / EXAMPLE).read_text(encoding="utf-8")
    page = (ROOT / DOCUMENT).read_text(encoding="utf-8")
    assert page == with_tables(page, reference(example))
    quality = (ROOT / QUALITY).read_text(encoding="utf-8")
    assert quality == with_tables(quality, expectations())
    assert all(f"| `{name}` |" in quality for name in ROW_EXPECTATIONS)


def test_the_prose_has_the_patterns_of_names() -> None:
    page = (ROOT / DOCUMENT).read_text(encoding="utf-8")
    assert f"matches\n  `{NAME_PATTERN}`." in page
    assert f"cases: `{COLUMN_PATTERN}`." in page


PAGE = """A <!-- x. Written by: me -->old<!-- end of x -->.
<!-- y. Written by: me -->
<!-- end of y -->
"""


def test_a_page_gets_what_is_between_markers() -> None:
    page = with_tables(PAGE, {"x": "new", "y": "| 1 |"})
    assert page == PAGE.replace("old", "new").replace("me -->\n", "me -->\n| 1 |\n")
    assert with_tables(page, {"x": "new", "y": "| 1 |"}) == page


@pytest.mark.parametrize("marker", re.findall("<!--.*?-->", PAGE))
def test_a_page_without_a_marker_is_refused(marker: str) -> None:
    for wrong in (PAGE.replace(marker, ""), PAGE + PAGE, PAGE.replace("x", "z")):
        with pytest.raises(ValueError, match="needs those of"):
            with_tables(wrong, {"x": "new", "y": ""})
