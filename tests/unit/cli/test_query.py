"""What a query may do, and how its answer looks whatever the events hold."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from rich.console import Console

from headgate.cli.rows import MOST, as_text, print_rows, shown
from headgate.declaration.load import load
from tests.unit.cli.conftest import Ask, last_object
from tests.unit.insight.ledger.conftest import DECLARATION, NOON, Lake

OfLake = tuple[str, str, str]


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM good",
        "INSERT INTO good SELECT * FROM good",
        "CREATE TABLE t AS SELECT 1",
        "DROP VIEW good",
        "COPY good TO 'out.csv'",
        "EXPORT DATABASE 'out'",
        "ATTACH 'out.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET memory_limit = '1GB'",
    ],
)
def test_what_does_not_read_is_refused(ask: Ask, lake: Lake, of_lake: OfLake, sql: str) -> None:
    before = sorted(Path().rglob("*"))
    pipeline, *root = of_lake
    code, out, err = ask("query", pipeline, sql, *root)
    assert (code, out) == (2, "")
    assert "is not allowed in a query" in err
    assert sorted(Path().rglob("*")) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('secret.csv')",
        "SELECT * FROM 'secret.csv'",
        "SELECT * FROM glob('*')",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO 'secret.csv'",
    ],
)
def test_files_are_out_of_reach(ask: Ask, lake: Lake, of_lake: OfLake, sql: str) -> None:
    Path("secret.csv").write_text("word\nhunter2\n")
    pipeline, *root = of_lake
    code, out, err = ask("query", pipeline, sql, *root)
    assert code == 2
    assert "not files or the network" in err
    assert "tables: " in err
    assert "hunter2" not in out + err
    assert Path("secret.csv").read_text() == "word\nhunter2\n"


@pytest.mark.slow
@pytest.mark.parametrize("sql", ["", " ; ", "-- nothing", "SELECT 1; SELECT 2"])
def test_a_query_is_one_statement(ask: Ask, lake: Lake, of_lake: OfLake, sql: str) -> None:
    pipeline, *root = of_lake
    code, _, err = ask("query", *root, "--", pipeline, sql)
    assert code == 2
    assert "statement" in err


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        "FROM good",
        "WITH a AS (SELECT * FROM good) SELECT * FROM a",
        "DESCRIBE good",
        "SUMMARIZE good",
        "EXPLAIN SELECT * FROM good",
        "PIVOT (SELECT 'x' AS a, 1 AS b) ON a USING sum(b)",
    ],
)
def test_other_ways_to_read(ask: Ask, lake: Lake, of_lake: OfLake, sql: str) -> None:
    pipeline, *root = of_lake
    assert last_object(ask("query", pipeline, sql, *root, "--json")[1])["rows"]


def test_show_tables_shows_them(ask: Ask, lake: Lake, of_lake: OfLake) -> None:
    pipeline, *root = of_lake
    rows = last_object(ask("query", pipeline, "SHOW ALL TABLES", *root, "--json")[1])["rows"]
    assert {"good", "per_minute", "quarantine"} <= {word for row in rows for word in row[:3]}


def test_a_name_of_this_program_is_no_table(ask: Ask, lake: Lake, of_lake: OfLake) -> None:
    pipeline, *root = of_lake
    code, _, err = ask("query", pipeline, "SELECT * FROM pipeline", *root)
    assert code == 2
    assert "does not exist" in err


@pytest.mark.parametrize(
    ("given", "near"),
    [
        ("gold.per_minut", "gold.per_minute"),
        ("golden.per_minute", "gold.per_minute"),
        ("minute", "gold.per_minute"),
        ("GODO", "silver.good"),
        ("silver.event", "bronze.events"),
        ("tiny.gold.per_minut", "gold.per_minute"),
        ("late.per_minit", "late.per_minute"),
        ("xyz", None),
    ],
)
def test_an_unknown_table_has_a_nearest_one(
    ask: Ask, lake: Lake, of_lake: OfLake, given: str, near: str | None
) -> None:
    pipeline, *root = of_lake
    code, _, err = ask("query", pipeline, f"SELECT 1 FROM {given}", *root)
    named = given.removeprefix("tiny.")
    first, _, line, *_ = err.splitlines()
    assert code == 2
    assert first == f"table {named} does not exist" + (f"; did you mean {near}?" if near else "")
    assert line == f"LINE 1: SELECT 1 FROM {given}"
    assert "sqlite" not in err


def test_a_name_of_another_pipeline_is_whole(ask: Ask, two: None) -> None:
    err = ask("query", "tiny", "other", "SELECT 1 FROM other.gold.per_minut")[2]
    assert "; did you mean other.gold.per_minute?\n" in err


@pytest.fixture
def two(lake: Lake, tmp_path: Path) -> None:
    """Another pipeline under the same root, with one gold row that counts 5."""
    file = tmp_path / "other.yml"
    file.write_text(DECLARATION.replace("pipeline: tiny", "pipeline: other"))
    other = Lake(tmp_path / "lake", load(file))
    other.commit("gold/per_minute", 1, [{"window_start": NOON, "events": 5}], {"final": 1})


SUMS = "SELECT t.events, u.events FROM {} t JOIN {} u USING (window_start)"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pipelines", "one", "another"),
    [
        ([], "tiny.gold.per_minute", "other.gold.per_minute"),
        ([], '"tiny".gold."per_minute"', "Other . GOLD . per_minute"),
        (["tiny", "other"], "tiny.gold.per_minute", "other.gold.per_minute"),
        (["./tiny.yml", "other"], "tiny.gold.per_minute", "other.gold.per_minute"),
        (["tiny"], "per_minute", "other.gold.per_minute"),
        (["tiny"], "tiny.gold.per_minute", "other.gold.per_minute"),
    ],
)
def test_tables_of_several_pipelines(
    ask: Ask, two: None, pipelines: list[str], one: str, another: str
) -> None:
    code, out, err = ask("query", *pipelines, SUMS.format(one, another), "--json")
    assert code == 0, err
    assert last_object(out)["rows"] == [[2, 5]]


def test_sessions_are_found_in_silver(ask: Ask, two: None) -> None:
    """The error for a `session` window proposes such a query."""
    gap = "time - lag(time) OVER (ORDER BY time) < INTERVAL 10 MINUTE"
    sql = f"SELECT count(*) FILTER (NOT coalesce(near, false)) FROM (SELECT {gap} AS near FROM %s)"
    assert last_object(ask("query", sql % "tiny.silver.good", "--json")[1])["rows"] == [[1]]


def test_quarantine_and_files_need_no_layer(ask: Ask, two: None) -> None:
    sql = "SELECT q.time FROM tiny.quarantine q JOIN tiny.quarantine.events USING (time)"
    assert len(last_object(ask("query", sql, "--json")[1])["rows"]) == 1
    sql = "SELECT g.files FROM (SELECT 1 AS files) g, other.files LIMIT 0"
    assert ask("query", sql, "--json")[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["SELECT * FROM ohter.gold.per_minute"], 'did you mean "other"'),
        (["tiny", "othr", "SELECT 1"], 'did you mean "other"'),
        (
            ["tiny", "other", "SELECT * FROM per_minute"],
            "tiny.gold.per_minute or other.gold.per_minute?",
        ),
        (["SELECT * FROM other.gold.per_minut"], "tables: other.bronze.events"),
        (["SELECT * FROM per_minute"], "headgate list"),
        (["tiny"], "no SQL is given"),
        (["SELECT * FROM tiny.gold.per_minute, 'secret.csv'"], "not files or the network"),
    ],
)
def test_an_invalid_query_is_reported(ask: Ask, two: None, arguments: list[str], says: str) -> None:
    Path("secret.csv").write_text("word\nhunter2\n")
    code, out, err = ask("query", *arguments)
    assert (code, out) == (2, "")
    assert says in err


def test_a_name_in_text_or_a_comment_is_no_pipeline(ask: Ask, two: None) -> None:
    sql = "SELECT 'ohter.gold.x' /* ohter.gold.x */ -- ohter.gold.x"
    assert ask("query", sql)[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("value", ["[/red]", "[bold]x[/bold]", "postgres:x:101", ":smile:"])
def test_values_are_shown_as_they_are(ask: Ask, lake: Lake, of_lake: OfLake, value: str) -> None:
    pipeline, *root = of_lake
    code, out, _ = ask("query", pipeline, f"SELECT '{value}' AS \"[red]a:\"", *root)
    assert code == 0
    assert out.splitlines()[:2] == ["[red]a:", value]


def printed(rows: Sequence[tuple[object, ...]], columns: list[str], *, terminal: bool) -> str:
    stream = io.StringIO()
    out = Console(file=stream, force_terminal=terminal, width=60, color_system=None)
    print_rows(out, columns, rows)
    return stream.getvalue()


@pytest.mark.parametrize("terminal", [False, True])
def test_an_escape_sequence_does_not_reach_the_terminal(terminal: bool) -> None:
    said = printed([("a\x1b[2Jb\x07\x9b1m",)], ["x"], terminal=terminal)
    assert "a\\x1b[2Jb\\x07\\x9b1m" in said
    assert not any(c in said.replace("\n", "") for c in map(chr, [*range(32), *range(127, 160)]))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("25.63700000000000000000", "25.637"),
        ("36.26444444444444444444", "36.26444444444444444444"),
        ("7.00000000000000000000", "7"),
        ("0E-20", "0"),
        ("-0.000000100", "-0.0000001"),
        ("96.00", "96.00"),
        ("100", "100"),
        ("1.500000", "1.500000"),
    ],
)
def test_a_decimal_is_shown_without_the_zeros_of_a_quotient(value: str, text: str) -> None:
    assert shown(Decimal(value)) == text
    assert "E" not in as_text(Decimal(value)), "JSON has every digit"


@pytest.mark.parametrize("terminal", [False, True])
def test_numbers_stand_on_the_right(terminal: bool) -> None:
    rows = [(1, "a", None), (10_000, "bcd", Decimal("2.50"))]
    lines = [
        line.rstrip() for line in printed(rows, ["n", "w", "d"], terminal=terminal).split("\n")
    ]
    assert lines[:3] == ["    n  w       d", "    1  a    null", "10000  bcd  2.50"]


@pytest.mark.slow
def test_a_pipe_gets_every_row_on_one_line_a_terminal_the_first() -> None:
    rows = [(i, "line\nend " * 20) for i in range(MOST + 5)]
    piped = printed(rows, ["n", "w"], terminal=False).splitlines()
    assert len(piped) == MOST + 7
    assert "the first 1,000 of 1,005 rows" in printed(rows, ["n", "w"], terminal=True)


def test_shown_keeps_lines_where_there_is_room() -> None:
    assert shown("a\nb") == "a\\nb"
    assert shown("a\nb", one_line=False) == "a\nb"


def test_nested_values_are_json() -> None:
    """As DuckDB gives them: times and decimals inside are text."""
    at = datetime(2026, 1, 31, 12, tzinfo=UTC)
    value = [{"sku": "ä", "price": Decimal("1.50"), "at": at, "tags": {"k": None}}, None]
    assert shown(value) == (
        '[{"sku": "ä", "price": "1.50", "at": "2026-01-31 12:00:00Z", "tags": {"k": null}}, null]'
    )


def test_numbers_that_json_does_not_have_are_texts(ask: Ask, lake: Lake, of_lake: OfLake) -> None:
    pipeline, *root = of_lake
    sql = "SELECT 'nan'::double, 'inf'::double, '-inf'::float, 1.5, ['nan'::double]"
    out = ask("query", pipeline, sql, *root, "--json")[1]

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    rows = json.loads(out, parse_constant=refuse)["rows"]
    assert rows == [["NaN", "Infinity", "-Infinity", "1.5", "[NaN]"]]
