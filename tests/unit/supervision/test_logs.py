"""The lines of a driver's log, and its files."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.lake.storage.layout import Layout
from headgate.supervision import logs
from headgate.supervision.logs import format_of, json_line, line_as_text, options_of, start_line

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
    assert line_as_text(line) == text


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


def test_logs_are_beside_the_tables(layout: Layout) -> None:
    assert logs.run_log(layout) == Path(layout.storage.root) / "_headgate" / "logs" / "run.log"


def test_tail_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    assert logs.tail_log(log, 2) == []
    log.write_bytes(b"one\ntwo \xff\nthree\n")
    assert logs.tail_log(log, 2) == ["two �", "three"]


def test_follow_yields_whole_lines_only(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("before\n")
    parts = iter(["ha", "lf\nnext\n"])

    def grow(_: float) -> None:
        with log.open("a") as file:
            file.write(next(parts))

    following = logs.follow_log(log, wait=grow)
    assert [next(following), next(following)] == ["half", "next"]


def test_follow_goes_on_where_a_log_begins_anew(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("before\n" * 10)
    parts = iter(["one\n", None, "two\n"])

    def grow(_: float) -> None:
        part = next(parts)
        with log.open("a") as file:
            if part is None:
                file.truncate(0)
            else:
                file.write(part)

    following = logs.follow_log(log, wait=grow)
    assert [next(following), next(following)] == ["one", "two"]
