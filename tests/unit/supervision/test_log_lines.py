"""Lines of a log, written as JSON and shown as text."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from headgate.supervision.log_lines import (
    as_text,
    format_of,
    json_line,
    options_of,
    start_line,
)

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def test_a_line_has_every_key() -> None:
    content = json.loads(json_line("stage", "reading", NOON, pipeline="shop", n=7))
    assert content == {
        "timestamp": "2026-05-04T12:00:00.000+00:00",
        "level": "INFO",
        "logger": "headgate",
        "event": "stage",
        "message": "reading",
        "pipeline": "shop",
        "n": 7,
        "stage": None,
        "exception": None,
    }


def test_a_line_is_one_line() -> None:
    line = json_line("output", "a\nb\u2028c\x00", NOON, exception="d\ne")
    assert line.splitlines(keepends=True)[0].count("\n") == 0
    assert "\n" not in line
    assert json.loads(line)["message"] == "a\nb\u2028c\x00"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (start_line(NOON, "json", "shop"), "--- 2026-05-04 12:00:00Z start"),
        (start_line(NOON, "text", "shop"), "--- 2026-05-04 12:00:00Z start"),
        (json_line("stage", "starting Spark", NOON), "… starting Spark"),
        (json_line("batch", "12:00:00  batch 7", NOON, rows=3), "12:00:00  batch 7"),
        (json_line("output", "a", NOON), "a"),
        (json_line("error", "wrong", NOON, remedy="do", exception="Trace"), "wrong\ndo"),
        (
            json_line("log", "slow", NOON, level="WARNING", logger="py4j", exception="Trace"),
            "2026-05-04T12:00:00.000+00:00 WARNING py4j slow\nTrace",
        ),
        ("plain", "plain"),
        ('{"a": 1}', '{"a": 1}'),
        ("{half", "{half"),
        ("{}", "{}"),
        ('{"event": "start", "message": 1, "timestamp": 5}',) * 2,
        ('{"event": "start", "message": 1, "timestamp": "x"}',) * 2,
    ],
)
def test_a_line_reads_well(line: str, text: str) -> None:
    assert as_text(line) == text


def test_the_format_comes_from_the_option_else_from_the_environment() -> None:
    json_ = {"HEADGATE_LOG_FORMAT": "json"}
    assert format_of((), {}) == "text"
    assert format_of(("--log-format", "json"), {}) == "json"
    assert format_of((), json_) == "json"
    assert format_of(("--take-over", "--log-format", "text"), json_) == "text"
    assert format_of(("--log-format",), {}) == "text"


def test_an_option_is_given_only_where_it_changes_something() -> None:
    json_ = {"HEADGATE_LOG_FORMAT": "json"}
    assert options_of("text", {}) == options_of("json", json_) == []
    assert options_of("json", {}) == ["--log-format", "json"]
    assert options_of("text", json_) == ["--log-format", "text"]
