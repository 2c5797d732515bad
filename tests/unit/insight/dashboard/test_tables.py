"""Top keys, rows, files, late rows and quarantine, from literal tables."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from headgate.declaration.load import load
from headgate.insight.dashboard.errors import BadQuestionError, ChangedTableError, TooMuchError
from headgate.insight.dashboard.questions import about
from headgate.insight.dashboard.questions import rows as rows_of_gold
from headgate.insight.dashboard.questions.cells import is_number, text_of
from headgate.insight.dashboard.questions.reader import Reader
from headgate.insight.dashboard.questions.refused import (
    RefusedQuestion,
    late_rows,
    quarantined,
    rejected,
)
from headgate.insight.dashboard.questions.rows import RowsQuestion, rows, write_file
from headgate.insight.dashboard.questions.selection import Selection
from headgate.insight.dashboard.questions.top import top, values
from headgate.insight.dashboard.questions.view import GoldView, TableView
from headgate.insight.dashboard.reading.engine import Engine, QueryLimits
from tests.support import charted
from tests.support.charted import Charted, invalid, late_sale, rejected_row, sale

YEAR_10000 = 253_402_300_800_000_000
"""In microseconds since 1970."""
LATE_IDENTITY = ("_partition", "_offset", "_item", "window_start")

HOSTILE = {
    "markup": ("<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"),
    "link": ("javascript:alert(1)", "javascript:alert(1)"),
    "control": ("a\x00b\x1b[31m\r\n", "a\\u0000b\\u001b[31m\\u000d\\u000a"),
    "direction": ("abc\u202egpj.exe\u2066", "abc\\u202egpj.exe\\u2066"),
    "separator": ("a\u2028b", "a\\u2028b"),
    "plane": ("a\U000e0041b", "a\\U000e0041b"),
    "letters": ("Grüße 数", "Grüße 数"),
}


def gold_of(shop: Charted, reader: Reader) -> GoldView:
    return GoldView.of(reader, shop.shown(), "sales")


def view_of(shop: Charted, reader: Reader, path: str) -> TableView:
    return TableView(reader, shop.shown().existing(path))


def page(shop: Charted, reader: Reader, **asked: Any) -> dict[str, Any]:
    question = RowsQuestion(**{"selection": Selection(), **asked})
    return rows(gold_of(shop, reader), question)


def tops(shop: Charted, reader: Reader, figure: str) -> dict[str, Any]:
    gold = gold_of(shop, reader)
    return top(gold, gold.facts.figure(figure), ("channel",), Selection())


def hop(minute: float, channel: str, revenue: str) -> dict[str, Any]:
    """A row of hopping windows of three minutes, a new one every minute."""
    row = sale(minute, channel, 1, revenue)
    return {**row, "window_end": row["window_start"] + timedelta(minutes=3)}


def test_top_keys_of_overlapping_windows(tmp_path: Path, reader: Reader) -> None:
    """The newest window counts, and every third one before it, wherever the newest begins."""
    shop = Charted(tmp_path)
    hopping = "{hopping: {size: 3 minutes, every: 1 minute}}"
    shop.file.write_text(charted.DECLARATION.replace("{tumbling: 1 minute}", hopping))
    shop.pipeline = load(shop.file)
    shop.sell((), [hop(minute, "app", "1.00") for minute in (1, 2, 3, 4, 5)])
    assert [row["text"] for row in tops(shop, reader, "revenue")["rows"]] == ["2.00"]
    shop.sell((), [hop(6, "web", "1.00")])
    assert {row["text"] for row in tops(shop, reader, "revenue")["rows"]} == {"1.00"}
    app = Selection(keys=(("channel", "app"),))
    gold = gold_of(shop, reader)
    found = top(gold, gold.facts.figure("revenue"), ("channel",), app)
    assert [row["text"] for row in found["rows"]] == ["2.00"], "5 is the newest of the chosen"


def test_all_windows_count_if_a_row_is_in_one_of_them(tmp_path: Path, reader: Reader) -> None:
    """Also if their lengths differ, such as those of days on which the clocks are changed."""
    shop = Charted(tmp_path)
    day = "{calendar: {unit: day, zone: Europe/Berlin}}"
    shop.file.write_text(charted.DECLARATION.replace("{tumbling: 1 minute}", day))
    shop.pipeline = load(shop.file)
    begin, found = sale(0, "app", 1, "1.00")["window_start"], []
    for hours in (24, 23, 24, 25, 24):
        bounds = {"window_start": begin, "window_end": begin + timedelta(hours=hours)}
        found.append({**sale(0, "app", 1, "1.00"), **bounds})
        begin = bounds["window_end"]
    shop.sell((), found)
    assert [row["text"] for row in tops(shop, reader, "revenue")["rows"]] == ["5.00"]


def test_a_total_that_is_too_large_is_told(reader: Reader) -> None:
    largest = "SELECT sum(CAST(9e37 AS DECIMAL(38, 0))) FROM range(10)"
    with pytest.raises(BadQuestionError, match="a total is greater than its type can be"):
        reader.engine.ask({}, largest)


def test_top_keys_of_a_sum(shop: Charted, reader: Reader) -> None:
    found = tops(shop, reader, "revenue")
    assert (found["over"], found["groups"]) == ("sum", 2)
    assert [(r["keys"], r["text"]) for r in found["rows"]] == [
        (["app"], "105.00"),
        (["web"], "40.00"),
    ]
    assert found["rows"][0]["share"] == pytest.approx(105 / 145)


def test_top_keys_of_an_average(shop: Charted, reader: Reader) -> None:
    found = tops(shop, reader, "typical")
    assert (found["over"], found["rows"][0]["share"]) == ("avg", None)


def test_values_of_a_key(shop: Charted, reader: Reader) -> None:
    gold = gold_of(shop, reader)
    app, web = ({"shown": each, "exact": each} for each in ("app", "web"))
    assert values(gold, "channel", "") == [app, web]
    assert values(gold, "channel", "WE") == [web]
    assert values(gold, "channel", "%") == []


@pytest.mark.parametrize("channel", ["k" * 100, "é" * 500, "a\u200db", "", None])
def test_the_rows_of_a_top_key_are_found(
    shop: Charted, reader: Reader, channel: str | None
) -> None:
    """Also if the shown text differs from the key."""
    shop.sell(final=[sale(9, channel, 99, "1.00")])
    found = tops(shop, reader, "orders")
    (exact,) = found["rows"][0]["exact"]
    assert exact == channel
    assert page(shop, reader, selection=Selection(keys=(("channel", exact),)))["total"] == 1
    if channel is not None:
        said = values(gold_of(shop, reader), "channel", channel)
        assert said[0]["exact"] == channel or channel == ""


def test_a_long_value_is_no_filter(shop: Charted, reader: Reader) -> None:
    shop.sell(final=[sale(9, "é" * 501, 99, "1.00")])
    found = tops(shop, reader, "orders")
    assert (found["rows"][0]["exact"], found["rows"][0]["keys"][0][:80]) == ((None,), "é" * 80)
    assert values(gold_of(shop, reader), "channel", "é")[0]["exact"] is None


def test_rows_begin_with_the_newest(shop: Charted, reader: Reader) -> None:
    found = page(shop, reader, size=2)
    assert found["total"] == 5
    channel, orders = (found["columns"].index(name) for name in ("channel", "orders"))
    assert [(row[channel], row[orders]) for row in found["cells"]] == [("app", "1"), ("web", "3")]
    assert found["cells"][0][0] == "2026-05-04 12:03:00Z"
    assert [found["numbers"][each] for each in (channel, orders)] == [False, True]


def test_pages_are_parts_of_one_order(shop: Charted, reader: Reader) -> None:
    """A page reads only the newest windows."""
    shop.sell(final=[sale(20 - n // 3, f"c{n}", n, "1.00") for n in range(40)])
    whole = page(shop, reader, size=200)["cells"]
    parts = [page(shop, reader, size=7, page=n)["cells"] for n in range(8)]
    assert [row for part in parts for row in part] == whole
    assert len(whole) == 44


def test_no_page_repeats_rows_beyond_the_limit(
    shop: Charted, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_of_gold, "REACHABLE", 4)
    shop.add("quarantine/orders", [invalid(each, "unparsable", b"{") for each in range(5)])
    shop.add("late/sales", [late_sale(each, "app", 90.0) for each in range(5)])
    quarantine, late = (view_of(shop, reader, p) for p in ("quarantine/orders", "late/sales"))
    asked = [RefusedQuestion(size=3, page=number) for number in range(4)]
    for pages in (
        [page(shop, reader, size=each.size, page=each.page) for each in asked],
        [quarantined(quarantine, each) for each in asked],
        [late_rows(late, each, ("window_start",), LATE_IDENTITY) for each in asked],
    ):
        assert [len(each["cells"]) for each in pages] == [3, 1, 0, 0]
        assert {each["reachable"] for each in pages} == {4}
        assert pages[0]["total"] > 4
        assert pages[1]["cells"][0] not in pages[0]["cells"]


def test_pages_and_orders(shop: Charted, reader: Reader) -> None:
    orders = list(page(shop, reader)["columns"]).index("orders")
    sorted_ = page(shop, reader, sort="-orders", size=2, page=1)
    assert [row[orders] for row in sorted_["cells"]] == ["3", "2"]
    with pytest.raises(BadQuestionError, match="has no column"):
        page(shop, reader, sort="orders; DROP TABLE gold")


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_values_are_harmless_text(shop: Charted, reader: Reader, kind: str) -> None:
    given, expected = HOSTILE[kind]
    shop.sell(final=[sale(9, given, 1, "1.00")])
    found = page(shop, reader, size=1)
    assert found["cells"][0][found["columns"].index("channel")] == expected


def test_the_last_window_of_the_year_9999_is_shown(shop: Charted, reader: Reader) -> None:
    """It ends after the last time that Python can represent."""
    ends = {"window_start": YEAR_10000 - 60_000_000, "window_end": YEAR_10000}
    shop.sell(final=[sale(0, "web", 1, "1.00") | ends])
    assert page(shop, reader, size=1)["cells"][0][:2] == [
        "9999-12-31 23:59:00Z",
        "10000-01-01 00:00:00Z",
    ]


@pytest.mark.slow
def test_a_value_of_ten_megabytes_is_cut(shop: Charted, reader: Reader) -> None:
    shop.sell(final=[sale(9, "x" * 10_000_000, 1, "1.00")])
    found = page(shop, reader, size=1)
    cell = found["cells"][0][found["columns"].index("channel")]
    assert cell == "x" * 300 + "… (10,000,000 characters)"
    shown = tops(shop, reader, "orders")
    assert max(len(row["keys"][0]) for row in shown["rows"]) < 120


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_files_are_exact(shop: Charted, reader: Reader, tmp_path: Path, form: str) -> None:
    gold = gold_of(shop, reader)
    file = tmp_path / "rows"
    chosen = Selection(keys=(("channel", "web"),))
    with file.open("wb") as opened:
        write_file(gold, chosen, form, opened)
    if form == "csv":
        with file.open(newline="") as text:
            found = list(csv.DictReader(text))
        assert [(r["channel"], r["revenue"]) for r in found] == [("web", "30.00"), ("web", "10.00")]
        assert found[0]["window_end"] == "2026-05-04 12:03:00.000000Z"
    else:
        read = pq.read_table(file)
        assert read.column("revenue").to_pylist() == [Decimal("30.00"), Decimal("10.00")]
        assert read.column_names == gold.version.schema.names


def test_large_files(shop: Charted, reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    gold = gold_of(shop, reader)

    def channels(**chosen: str) -> list[str]:
        file = io.BytesIO()
        selection = Selection(keys=tuple(chosen.items()))
        write_file(gold, selection, "parquet", file)
        found: list[str] = pq.read_table(file).column("channel").to_pylist()
        return found

    newest_first = ["app", "web", "app", "app", "web"]
    assert channels() == newest_first
    monkeypatch.setattr(rows_of_gold, "MOST_ROWS_IN_ORDER", 4)
    assert channels() != newest_first, "too many to bring them into an order"
    assert sorted(channels()) == sorted(newest_first)
    monkeypatch.setattr(rows_of_gold, "MOST_ROWS_OF_A_FILE", 4)
    with pytest.raises(TooMuchError, match="more than 4 rows\n.*the rows of one key"):
        channels()
    assert channels(channel="web") == ["web", "web"]


def test_a_file_that_takes_too_long() -> None:
    """DuckDB is interrupted while Arrow reads from it, and Arrow raises its own errors."""
    engine = Engine(QueryLimits(seconds=0.1))
    with engine.connection({}) as connection:
        # DuckDB ignores an interrupt before the query begins.
        read = connection.sql("FROM range(1_000_000_000_000)").to_arrow_reader(65_536)
        with pytest.raises(TooMuchError, match="took longer than"), engine.limited(connection):
            for _ in read:
                pass
    engine = Engine(QueryLimits(seconds=60))
    said = "Out of Memory Error: failed to allocate data"
    with pytest.raises(TooMuchError, match="of memory"), engine.limited(connection):
        raise OSError(said)
    with pytest.raises(OSError, match="no such file"), engine.limited(connection):
        raise OSError("no such file")


def test_quarantine_is_masked(shop: Charted, reader: Reader) -> None:
    view = view_of(shop, reader, "quarantine/orders")
    found = quarantined(view, RefusedQuestion())
    assert found["reasons"] == [
        {"reason": "missing_id", "count": 1},
        {"reason": "unparsable", "count": 1},
    ]
    row = dict(zip(found["columns"], found["cells"][0], strict=True))
    assert row["reason"] == "missing_id"
    assert (row["event_id"], row["detail"]) == ("xxx-9", "missing: xxx 9")
    assert row["value"] == '{"xx": xxxx}'
    assert "Kim" not in str(found)
    shop.add("quarantine/orders", [invalid(9, "unparsable", b"\xff\xfe<b>")])
    newest = quarantined(view_of(shop, reader, "quarantine/orders"), RefusedQuestion())
    assert newest["cells"][0][newest["columns"].index("value")] == "\\xxx\\xxx<x>"
    shown = quarantined(view, RefusedQuestion(show_values=True, reason="missing_id"))
    assert (shown["total"], "Kim-7" in str(shown)) == (1, True)


@pytest.mark.parametrize(
    ("detail", "shown"),
    [
        ('amount is not of type int: "Kim 7"', 'amount is not of type int: "xxx 9"'),
        ("at is not ISO 8601, such as 2026-01-31T12:00:00: x", None),
        ("id is missing or empty", None),
        ("not declared: Kim7", "not declared: xxx9"),
        ("it ends within the document, '{Kim'; a", "it ends within the document, '{xxx'; x"),
        ("not UTF-8: the byte 0xFF after 'Kim'", "not UTF-8: xxx xxxx 9xxx xxxxx 'xxx'"),
    ],
)
def test_the_words_of_a_detail_are_not_masked(
    shop: Charted, reader: Reader, detail: str, shown: str | None
) -> None:
    shop.add("quarantine/orders", [invalid(9, "wrong_type", b"x", detail=detail)])
    found = quarantined(view_of(shop, reader, "quarantine/orders"), RefusedQuestion())
    assert found["cells"][0][found["columns"].index("detail")] == (shown or detail)


def test_rejected_rows_are_counted_by_rule(tmp_path: Path, reader: Reader) -> None:
    rows = [rejected_row(0, "sane"), rejected_row(1, "sane", "known"), rejected_row(2, "sane")]
    text = charted.DECLARATION.replace("{from: orders}", "{from: orders, expectations: clean}")
    (tmp_path / "expectations").mkdir()
    (tmp_path / "expectations/clean.yml").write_text("expectations: [{id: a, expect: true}]")
    shop = Charted(tmp_path, text)
    shop.add("rejected/clean", rows)
    view = view_of(shop, reader, "rejected/clean")
    found = rejected(view, RefusedQuestion())
    assert found["reasons"] == [{"reason": "sane", "count": 3}, {"reason": "known", "count": 1}]
    assert (found["total"], len(found["cells"])) == (3, 3)
    assert [(each["label"], sum(each["v"])) for each in found["over_time"]["series"]] == [
        ("sane", 3),
        ("known", 1),
    ]
    row = dict(zip(found["columns"], found["cells"][0], strict=True))
    assert "sane" in str(row["rules"])
    assert (row["suite"], row["event_id"], row["value"]) == ("clean", "xxx-9", '{"xx": "xxx-9"}')
    one = rejected(view, RefusedQuestion(reason="known"))
    assert (one["total"], len(one["cells"])) == (1, 1)


def test_reasons_without_a_line_of_their_own_are_counted(shop: Charted, reader: Reader) -> None:
    more = [invalid(each, f"reason{each}", b"{") for each in range(6)]
    shop.add("quarantine/orders", more)
    view = view_of(shop, reader, "quarantine/orders")
    series = quarantined(view, RefusedQuestion())["over_time"]["series"]
    assert [each["label"] for each in series][5:] == ["reason4", "others"]
    assert [sum(each["v"]) for each in series] == [1] * 6 + [2]


def test_late_rows(shop: Charted, reader: Reader) -> None:
    view = view_of(shop, reader, "late/sales")
    found = late_rows(view, RefusedQuestion(), ("window_start", "window_end"), LATE_IDENTITY)
    assert found["seconds"]["max"] == 90
    assert found["columns"][:3] == ("window_start", "window_end", "late_seconds")
    row = dict(zip(found["columns"], found["cells"][0], strict=True))
    assert (row["window_start"], row["channel"]) == ("2026-05-04 12:01:00Z", "xxx")
    assert sum(found["over_time"]["series"][0]["v"]) == 2


def test_shares(shop: Charted, reader: Reader) -> None:
    said = about.about(gold_of(shop, reader))
    assert (said["n"], said["rows"], said["final"]) == (1, 5, 4)
    assert said["late_share"] == pytest.approx(2 / 18)
    assert said["quarantined_share"] == pytest.approx(2 / 20)
    assert said["held"] is None


def test_a_table_that_is_older_than_its_declaration(shop: Charted, reader: Reader) -> None:
    text = shop.file.read_text().replace("largest: max", "greatest: max")
    shop.file.write_text(text)
    shop.pipeline = load(shop.file)
    with pytest.raises(ChangedTableError, match="the table gold has no column greatest"):
        tops(shop, reader, "greatest")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("['2026-05-04 12:00:00+00'::TIMESTAMPTZ]", '["2026-05-04 12:00:00+00"]'),
        ("[1.5::DOUBLE]", "[1.5]"),
        ("[1.25::DECIMAL(5,2)]", "[1.25]"),
        ("MAP {'a': 1}", '{"a":1}'),
    ],
)
def test_nested_values_are_texts_and_no_numbers(value: str, text: str) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"CREATE TABLE t AS SELECT {value} AS x")
        (described,) = connection.execute("DESCRIBE t").fetchall()
        found = connection.execute(f"SELECT {text_of('x', described[1])} FROM t").fetchall()
    assert found == [(text,)]
    assert not is_number(described[1])
