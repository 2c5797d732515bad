"""Dashboards that a project declares: what is wrong with one, and what its SQL can reach."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from headgate.declaration.errors import Invalid
from headgate.insight.dashboard.boards import worker
from headgate.insight.dashboard.boards.answering import ChartError, answer
from headgate.insight.dashboard.boards.binding import Result, bound
from headgate.insight.dashboard.boards.model import Chart, TableName
from headgate.insight.dashboard.boards.reading import BoardError, read_board
from headgate.insight.dashboard.boards.runner import ChartRunner, NotNowError
from headgate.insight.dashboard.boards.statement import tables_in
from headgate.insight.dashboard.errors import TooMuchError
from headgate.insight.dashboard.questions.reader import Reader
from headgate.insight.dashboard.server.projects import _Boards
from tests.support.charted import Charted

RIGHT = """
dashboard: money
title: Money
charts:
  per_minute:
    kind: line
    sql: SELECT window_start, channel, revenue FROM shop.gold.sales ORDER BY 1
    y: [revenue]
    series: channel
  total: {kind: number, sql: SELECT sum(revenue) FROM gold.sales, unit: EUR, width: third}
  channels:
    kind: bar
    sql: SELECT channel, sum(orders) AS n FROM gold.sales GROUP BY 1 ORDER BY 1
  rows: {kind: table, sql: "WITH a AS (FROM gold.sales) SELECT * FROM a ORDER BY 1, 3 -- the rows"}
"""


def answers(shop: Charted, reader: Reader, text: str = RIGHT) -> dict[str, dict[str, Any]]:
    board = read_board(shop.board(text), {"shop": shop.pipeline}, bound)
    gold = shop.shown().version("gold/sales")
    assert gold is not None
    return {
        name: answer(reader, chart, dict.fromkeys(chart.tables, gold))
        for name, chart in board.charts.items()
    }


@pytest.mark.slow
def test_charts(shop: Charted, reader: Reader) -> None:
    found = answers(shop, reader)
    lines = {each["label"]: each["v"] for each in found["per_minute"]["series"]}
    assert lines == {"app": [40, 60, None, 5], "web": [10, None, 30, None]}
    assert (found["total"]["text"], found["total"]["unit"]) == ("145.00", "EUR")
    assert found["channels"]["labels"] == ["app", "web"]
    assert found["channels"]["series"][0]["v"] == [11, 5]
    assert len(found["rows"]["cells"]) == 5


LINE = "dashboard: x\ncharts: {a: {kind: line, sql: '{sql}', y: [v]}}\n"
VALUES = "SELECT * FROM (VALUES (1, 7.0, {first}), (1, 8.0, {second})) AS t(x, v, s)"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("series", "says"),
    [("", "the same x, .*\n.*add series, or "), (", series: s", "the same x of s, .*\n")],
)
def test_a_line_has_one_value_for_each_x(
    shop: Charted, reader: Reader, series: str, says: str
) -> None:
    text = LINE.replace("{sql}", VALUES.format(first=1, second=1)).replace("[v]", f"[v]{series}")
    with pytest.raises(ChartError, match=f"several rows have {says}aggregate the rows"):
        answers(shop, reader, text)


@pytest.mark.slow
def test_a_null_has_a_line_of_its_own(shop: Charted, reader: Reader) -> None:
    sql = VALUES.format(first="NULL", second="$$None$$")
    text = LINE.replace("{sql}", sql).replace("[v]", "[v], series: s")
    found = {each["label"]: each["v"] for each in answers(shop, reader, text)["a"]["series"]}
    assert found == {"null": [7], "None": [8]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("dashboard: x\n", ":1: the key 'charts' is missing"),
        (
            "dashboard: X y\ncharts: {a: {kind: table, sql: SELECT 1}}",
            ":1: dashboard: 'X y' is not",
        ),
        ("dashboard: x\ncharts: {a: {kind: pie, sql: SELECT 1}}", "must be one of line, bar"),
        ("dashboard: x\nchart: {a: {kind: table, sql: SELECT 1}}", 'did you mean "charts"'),
        (
            "dashboard: x\ncharts:\n  a:\n    kind: table\n    sql: SELECT * FROM gold.sale",
            ":5: charts.a.sql: there is no table gold.sale; the tables are shop.gold.sales (did "
            'you mean "gold.sales"?)',
        ),
        (
            "dashboard: x\ncharts:\n  a:\n    kind: table\n    sql: SELECT revenu FROM gold.sales",
            'Referenced column "revenu" not found',
        ),
        ("dashboard: x\ncharts: {a: {kind: table, sql: SELECT 1 FRM x}}", "syntax error"),
        (
            "dashboard: x\ncharts:\n  a:\n    kind: bar\n    sql: FROM gold.sales\n    y: [revnue]",
            ":6: charts.a.y: 'revnue' is not a column of the SQL",
        ),
        (
            "dashboard: x\ncharts: {a: {kind: line, sql: 'SELECT channel, 1 n FROM gold.sales'}}",
            "the x of a line, 'channel', is VARCHAR: use a bar",
        ),
        (
            "dashboard: x\ncharts: {a: {kind: bar, sql: 'SELECT channel FROM gold.sales'}}",
            "a bar needs a column with numbers",
        ),
        ("dashboard: x\ncharts: {a: {kind: table, sql: SELECT * FROM sales}}", 'mean "gold.sales"'),
    ],
)
def test_wrong_dashboards(shop: Charted, text: str, says: str) -> None:
    file = shop.board(text)
    with pytest.raises(BoardError) as caught:
        read_board(file, {"shop": shop.pipeline}, bound)
    assert says in str(caught.value)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize("terms", [300, 480, 1_000, 2_000])
def test_a_statement_that_is_nested_deeply_is_told(terms: int) -> None:
    sql = f"SELECT {'+'.join(['orders'] * terms)} FROM gold.sales"
    with suppress(Invalid):
        assert tables_in(sql) == (TableName(None, "sales"),)


def test_a_dashboard_is_examined_again_if_there_was_no_time(shop: Charted) -> None:
    now, asked = [100.0], [0]

    def bind(sql: str, tables: Mapping[TableName, str]) -> Result:
        asked[0] += 1
        if asked[0] == 1:
            raise NotNowError("the answer took longer than 10 s")
        return bound(sql, tables)

    known, file = _Boards(lambda: now[0]), shop.board(RIGHT)
    for at in (100.0, 159.0):
        now[0] = at
        with pytest.raises(BoardError, match="took longer than 10 s"):
            known.board(file, {"shop": shop.pipeline}, bind)
    now[0] = 160.0
    assert known.board(file, {"shop": shop.pipeline}, bind).name == "money"
    before = asked[0]
    now[0] = 10_000.0
    known.board(file, {"shop": shop.pipeline}, bind)
    assert asked[0] == before, "a sound one is kept"


def test_all_problems_are_told_at_once(shop: Charted) -> None:
    text = "dashboard: x\ncharts:\n  a: {kind: pie}\n  b: {kind: bar, sql: SELECT 1, wdth: half}\n"
    with pytest.raises(BoardError) as caught:
        read_board(shop.board(text), {"shop": shop.pipeline}, bound)
    assert [problem.line for problem in caught.value.problems] == [3, 3, 4, 4]


def test_a_byte_that_is_no_text_is_told_with_its_line(shop: Charted) -> None:
    file = shop.board("")
    file.write_bytes(b"dashboard: x\ncharts: \xff\n")
    with pytest.raises(BoardError, match=f"{file}:2: is not UTF-8 text"):
        read_board(file, {"shop": shop.pipeline}, bound)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'a;b' AS t",
        "SELECT 'a;b' AS t; -- note",
        "SELECT 'a;b' AS t -- note;",
        "SELECT 'a;b' AS t -- a; b\n;; /* ; */ ;\n",
        "; -- note\nSELECT $$a;b$$ AS t;",
        'WITH "é;" AS (SELECT \'a;b\' AS t) FROM "é;" /* – */;',
    ],
)
def test_semicolons_and_comments_around_a_statement_mean_nothing(sql: str, reader: Reader) -> None:
    assert tables_in(sql) == ()
    assert bound(sql, {}).columns == ("t",)
    assert answer(reader, Chart("a", "table", "A", sql), {})["cells"] == [["a;b"]]


ATTACKS = [
    "COPY (SELECT 1) TO '/tmp/x.csv'",
    "COPY gold.sales FROM '/etc/passwd'",
    "ATTACH '/tmp/x.db'",
    "ATTACH ':memory:' AS y",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    'SELECT * FROM "/etc/passwd"',
    "FROM '/etc/*.csv'",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/proc/self/environ')",
    "SELECT * FROM read_parquet('https://example.org/a.parquet')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT (SELECT max(content) FROM read_text('/etc/passwd')) FROM gold.sales",
    "WITH a AS (FROM glob('*')) SELECT * FROM a",
    "WITH a AS MATERIALIZED (SELECT 1 FROM read_text('x')) FROM gold.sales",
    "SELECT * FROM gold.sales WHERE channel IN (SELECT content FROM read_text('/etc/passwd'))",
    "SELECT * FROM gold.sales ORDER BY (SELECT max(content) FROM read_text('/etc/passwd'))",
    "INSTALL httpfs",
    "LOAD httpfs",
    "PRAGMA database_list",
    "PRAGMA memory_limit='8GB'",
    "SET memory_limit = '8GB'",
    "SET lock_configuration = false",
    "RESET enable_external_access",
    "CALL pragma_version()",
    "EXPORT DATABASE '/tmp/x'",
    "IMPORT DATABASE '/tmp/x'",
    "CREATE TABLE x AS SELECT 1",
    "CREATE SECRET s (TYPE s3)",
    "DROP VIEW gold.sales",
    "DELETE FROM gold.sales",
    "INSERT INTO gold.sales SELECT * FROM gold.sales",
    "SELECT 1; DROP VIEW gold.sales",
    "EXPLAIN ANALYZE SELECT 1",
    "SHOW ALL TABLES",
    "DESCRIBE gold.sales",
    "SUMMARIZE gold.sales",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM duckdb_views()",
    "SELECT * FROM pragma_table_info('gold.sales')",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM pg_catalog.pg_class",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM query_table('gold.sales')",
    "SELECT * FROM python_variable",
    "SELECT * FROM silver.clean",
    "SELECT * FROM shop.quarantine.orders",
    'SELECT * FROM temp.main."shop__gold__sales"',
    "VACUUM",
    "CHECKPOINT",
    "BEGIN",
    "",
    ";",
    "SELECT " + "1 + " * 10_000 + "1",
]


@pytest.mark.parametrize("sql", ATTACKS, ids=lambda sql: sql[:40] or "nothing")
def test_a_chart_reads_gold_tables_alone(sql: str) -> None:
    with pytest.raises(Invalid):
        tables_in(sql)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        *ATTACKS,
        "SELECT getenv('HOME')",
        "SELECT write_log('x')",
        "SELECT nextval('x')",
    ],
    ids=lambda sql: sql[:40] or "nothing",
)
def test_the_connection_reaches_nothing_else(still: Charted, reader: Reader, sql: str) -> None:
    """Even if a statement were not examined: no file is read or written, and no setting changed."""
    import duckdb

    chart = Chart("a", "table", "A", sql, tables=(TableName(None, "sales"),))
    gold = still.shown().version("gold/sales")
    assert gold is not None
    before = sorted(still.folder.rglob("*"))
    try:
        found = answer(reader, chart, {TableName(None, "sales"): gold})
    except (ChartError, duckdb.Error):
        found = {}
    assert "root:" not in str(found)
    assert sorted(still.folder.rglob("*")) == before


HUGE = [
    "SELECT count(*) FROM range(1000000000) a, range(1000000000) b",
    "SELECT sum(a.orders) FROM gold.sales a, gold.sales b, range(100000000) c, range(1000) d",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
    "SELECT count(DISTINCT repeat(CAST(range AS VARCHAR), 1000)) FROM range(100000000)",
    # Neither an interrupt nor DuckDB's memory limit ends these, so the process is killed.
    "SELECT length(repeat('x', 4000000000))",
    "SELECT count(*) FROM gold.sales WHERE length(repeat(channel, 1000000000)) > 1",
]


@pytest.fixture(scope="module")
def runner() -> Iterator[ChartRunner]:
    made = ChartRunner(seconds=1)
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("sql", HUGE)
def test_a_chart_has_limits(
    still: Charted, runner: ChartRunner, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chart = Chart("a", "number", "A", sql, tables=(TableName(None, "sales"),))
    gold = still.shown().version("gold/sales")
    assert gold is not None
    began = time.monotonic()
    with pytest.raises((TooMuchError, ChartError)):
        runner.ask(chart, {TableName(None, "sales"): gold.place})
    assert time.monotonic() - began < 1 + 3 + 20 + 5, "after its time, it is killed"
    good = Chart("b", "number", "B", "SELECT sum(orders) FROM gold.sales", tables=chart.tables)
    monkeypatch.setattr(runner, "_seconds", 20)  # its process may have to start
    assert runner.ask(good, {TableName(None, "sales"): gold.place})["text"] == "16"


def test_a_system_without_proc_limits_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as macOS: charts are shown there, too."""
    limits: list[int] = []
    monkeypatch.setattr(worker, "_STATUS", str(tmp_path / "none"))
    monkeypatch.setattr(resource, "setrlimit", lambda limit, _: limits.append(limit))
    worker._limit_memory(worker._data())
    assert limits == [resource.RLIMIT_CORE]


@pytest.mark.slow
def test_a_process_that_keeps_memory_is_replaced(still: Charted) -> None:
    """Kept memory counts against its limit; in the end it cannot start a thread for a chart."""
    gold = still.shown().version("gold/sales")
    assert gold is not None
    places = {TableName(None, "sales"): gold.place}
    good, large = (
        Chart("a", "number", "A", sql, tables=tuple(places))
        for sql in ("SELECT sum(orders) FROM gold.sales", HUGE[0])
    )
    with closing(ChartRunner(seconds=60)) as runner:  # until memory is full, not longer
        for _ in range(2):
            runner.ask(good, places)
            kept = runner._process
            assert runner.ask(good, places)["text"] == "16"
            assert runner._process is kept is not None, "a process serves many charts"
            with pytest.raises(TooMuchError, match="memory"):
                runner.ask(large, places)
            assert not psutil.pid_exists(kept.pid)


@pytest.mark.slow
@pytest.mark.parametrize("sql", ["SELECT length(repeat('x', 4000000000))", "SELECT 1 LIMIT 1 / 0"])
def test_a_statement_is_bound_elsewhere(runner: ChartRunner, sql: str) -> None:
    """DuckDB computes constants when it binds a statement, so another process binds it."""
    with suppress(Invalid):
        runner.bind(sql, {})
    found = runner.bind("SELECT 1 AS a, 'x' AS b", {})
    assert (found.columns, found.types) == (("a", "b"), ("INTEGER", "VARCHAR"))
    with pytest.raises(Invalid, match="Referenced column"):
        runner.bind("SELECT c FROM gold.sales", {TableName(None, "sales"): "a INTEGER"})


@pytest.mark.slow
def test_the_process_ends_with_its_runner() -> None:
    made = ChartRunner()
    made.bind("SELECT 1", {})
    assert made._process is not None
    pid = made._process.pid
    made.close()
    assert not psutil.pid_exists(pid)
