"""The landing folder: odd names, other formats, damaged, rewritten, vanished and half-written
files."""

from __future__ import annotations

import gzip
import os
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headgate.flow.sources.errors import FileChangedError
from headgate.insight.status.freshness import freshness
from headgate.lake.control.driver_requests import SkipRequest
from tests.oracle import derive
from tests.support.engine import Engine
from tests.support.events import reading, readings
from tests.support.landing import ARRIVED, Landing, lines
from tests.support.readings import NOON, declare, rules
from tests.support.tables import differences, read

pytestmark = pytest.mark.spark

GOLD = ("bands",)


def engine_over(spark: SparkSession, folder: Path, landing: Landing, **options: str) -> Engine:
    pipeline = declare(folder, landing.folder, gold=GOLD, **options)
    return Engine(spark, pipeline, folder / "root")


def logged(engine: Engine) -> dict[str, tuple[str, str | None]]:
    """The status and the reason of each path in the files log of a new reader."""
    log = engine.start().files_log
    return {file.path: (file.status, file.reason) for file in log.files}


def freshness_of(engine: Engine) -> tuple[datetime, datetime]:
    """When the last record came, and when gold last changed."""
    fresh = freshness(engine.layout, engine.pipeline)
    arrived = fresh.sources["raw"].arrived
    assert arrived is not None
    assert fresh.changed is not None
    return arrived, fresh.changed


ODD_NAMES = [
    "#hash.json",
    "%20.json",
    "100%.json",
    "a b.json",
    "a:b.json",
    "a+b&c=d;e,f.json",
    "a?b.json",
    "back\\slash.json",
    "day=1/part.json",
    "quote'\".json",
    "star*.json",
    "sub dir/ünïcødé ☃.json",
    "z.json.gz",
    "{x,y}.json",
    "[ab].json",
]


def test_odd_names_are_only_names(spark: SparkSession, tmp_path: Path) -> None:
    landing = Landing(tmp_path / "landing")
    for number, name in enumerate(sorted(ODD_NAMES)):
        content = lines([reading(f"r{number}", NOON + timedelta(seconds=number), level=7)])
        landing.write(name, content)
        if name.endswith(".gz"):
            path = landing.folder / name
            path.write_bytes(gzip.compress(content))
            os.utime(path, (ARRIVED.timestamp(), ARRIVED.timestamp()))
    engine = engine_over(spark, tmp_path, landing).run_all()
    found = {row["file"]: row["event_id"] for row in read(engine.root, "bronze/raw")}
    assert found == {name: f"r{number}" for number, name in enumerate(sorted(ODD_NAMES))}
    assert differences(engine.root, derive(landing.records(), rules(gold=GOLD))) == {}


def test_a_file_of_many_splits_is_read_in_line_order(spark: SparkSession, tmp_path: Path) -> None:
    """Two batches, one file above the size of a split; duplicates reach across both."""
    landing = Landing(tmp_path / "landing")
    values = readings(60, seed=9)
    padded = [value + b" " * 200_000 for value in values]
    landing.write_all([lines(padded), lines(values)])
    engine = engine_over(spark, tmp_path, landing)
    engine.list_new()
    engine.ingest(1)
    engine.ingest(2)
    engine.catch_up()
    assert len(landing.written[0][0]) > 8 << 20
    assert differences(engine.root, derive(landing.records(), rules(gold=GOLD))) == {}


CSV_FILES = {
    "1.csv": b"id,site,value,level,weight,ok,day,at\r\n"
    b"c1,North,99.995,7,0.5,true,2026-03-01,2026-03-01T11:31:00Z\r\n"
    b'c2,"a, ""b""",,,,,,2026-03-01T11:31:01Z\r\n'
    b"c3,North,1.5,many,0.5,true,2026-03-01,2026-03-01T11:31:02Z\r\n",
    "2.csv": b"at,level,id\n"
    b"2026-03-01T11:31:03Z,3,c4\n"
    b"2026-03-01T11:31:04Z,3\n"
    b"2026-03-01T11:31:05Z,3,c6,more\n"
    b"\n"
    b"yesterday,3,c7\n"
    b",3,c8\n",
}


def test_csv_under_headers_in_any_order(spark: SparkSession, tmp_path: Path) -> None:
    landing = Landing(tmp_path / "landing")
    for name, content in CSV_FILES.items():
        landing.write(name, content)
    engine = engine_over(spark, tmp_path, landing, format="csv").run_all()
    bronze = sorted(read(engine.root, "bronze/raw"), key=lambda row: row["offset"])
    assert [(row["reason"], row["reason_column"]) for row in bronze] == [
        (None, None),
        (None, None),
        ("wrong_type", "level"),
        (None, None),
        ("unparsable", None),
        ("unparsable", None),
        ("unparsable_time", None),
        ("missing_time", None),
    ]
    raw = [line for text in CSV_FILES.values() for line in text.split(b"\n")[1:] if line]
    assert [row["value"] for row in bronze] == raw
    first, second, third = sorted(read(engine.root, "silver/clean"), key=lambda row: row["_offset"])
    assert (first["site"], first["value"], first["ok"]) == ("north", Decimal("100.00"), True)
    assert (second["site"], second["value"], second["level"]) == ('a, "b"', None, None)
    assert (third["id"], third["level"], third["site"]) == ("c4", 3, None)


HEADER = b"id,at,level,site\n"
MIXED: dict[str, bytes] = {
    "01.csv": HEADER + b"a1,2026-03-01T11:31:00Z,3.0,North\na2,2026-03-01T11:31:00Z,2.7,North\n",
    "02.csv": b"sep=;\n" + HEADER.replace(b",", b";"),
    "03.csv": HEADER.replace(b",", b";") + b"b1;2026-03-01T11:31:00Z;1;x\n" * 400_000,
    "04.csv": HEADER.decode().encode("utf-16"),
    "05.csv": b"id,at,id\nc1,2026-03-01T11:31:00Z,c1\n",
    "06.CSV.GZ": gzip.compress(HEADER + b'd1,2026-03-01T11:31:01Z, 007 ,"a ""b"""\n'),
    "07.csv": HEADER + b'e1,2026-03-01T11:31:02Z,1,"say \\"hi\\""\ne2,2026-03-01T11:31:02Z,1\n',
    "08.csv.gz": b"",
    "09.csv": b"PK\x03\x04 a workbook",
    "10.csv": HEADER,
}


def test_each_file_and_each_row_of_csv_that_is_not_read_is_told_why(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In workers: the parts of a file with a wrong header are read by several."""
    monkeypatch.setattr("headgate.flow.bronze.stage.IN_DRIVER", 0)
    landing = Landing(tmp_path / "landing")
    for name, content in MIXED.items():
        landing.write(name, content)
    assert len(MIXED["03.csv"]) > 8 << 20
    engine = engine_over(spark, tmp_path, landing, format="csv").run_all()
    silver = {row["id"]: row for row in read(engine.root, "silver/clean")}
    assert {name: (row["level"], row["site"]) for name, row in silver.items()} == {
        "a1": (3, "north"),
        "d1": (7, 'a "b"'),
    }
    details = [row["detail"] for row in read(engine.root, "quarantine/raw")]
    assert sorted(details) == [
        "3 cells, the header has 4 names",
        "cell 4: text after the closing quote, 'hi\\\"\"'; write a quote within a cell twice, or "
        'declare csv: {escape: "\\\\"}',
        "level is not of type int: 2.7",
    ]
    log = logged(engine)
    expected = "expected some of id, site, value, level, weight, ..."
    assert {name: reason for name, (status, reason) in log.items() if status == "set_aside"} == {
        "02.csv": f"the header has 1 name, 'sep=;'; {expected}; remove the line before the header",
        "03.csv": f"the header has 1 name, 'id;at;level;site'; {expected}; declare csv: "
        '{delimiter: ";"}',
        "04.csv": "it is encoded in UTF-16; convert it to UTF-8",
        "05.csv": "the header has the name 'id' twice; rename one",
        "09.csv": "it is a zip archive, as .xlsx files are, not lines of text; unpack it, or "
        "compress it with gzip, bzip2 or zstd",
    }


def test_parquet(spark: SparkSession, tmp_path: Path) -> None:
    landing = Landing(tmp_path / "landing")
    rows = {
        "id": ["p1", "p2", None],
        "site": ["North", None, "x"],
        "value": pa.array([Decimal("1.50"), None, None], pa.decimal128(12, 2)),
        "level": pa.array([7, None, 1], pa.int32()),
        "day": [date(2026, 3, 1), None, None],
        "at": pa.array([NOON, NOON, NOON], pa.timestamp("us", "UTC")),
    }
    landing.folder.mkdir()
    path = landing.folder / "1.parquet"
    pq.write_table(pa.table(rows), path)
    os.utime(path, (ARRIVED.timestamp(), ARRIVED.timestamp()))
    engine = engine_over(spark, tmp_path, landing, format="parquet").run_all()
    bronze = sorted(read(engine.root, "bronze/raw"), key=lambda row: row["offset"])
    assert [row["reason"] for row in bronze] == [None, None, "missing_id"]
    silver = sorted(read(engine.root, "silver/clean"), key=lambda row: row["_offset"])
    assert [(r["id"], r["site"], r["value"], r["level"]) for r in silver] == [
        ("p1", "north", Decimal("1.50"), 7),
        ("p2", None, None, None),
    ]
    assert {row["_event_time"] for row in silver} == {NOON}


def test_a_cut_gzip_is_set_aside_and_the_stream_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    landing = Landing(tmp_path / "landing")
    good = [lines([reading(f"g{n}", NOON, level=n)]) for n in range(2)]
    whole = gzip.compress(lines(readings(300, seed=1)))
    landing.write("1.json", good[0])
    landing.write("2.json.gz", whole[: len(whole) // 2])
    landing.write("3.json", good[1])
    engine = engine_over(spark, tmp_path, landing).run_all()
    ids = sorted(row["event_id"] for row in read(engine.root, "bronze/raw"))
    assert ids == ["g0", "g1"]
    log = logged(engine)
    assert log["1.json"] == log["3.json"] == ("recorded", None)
    status, reason = log["2.json.gz"]
    assert status == "set_aside"
    assert "EOFError" in (reason or "")
    assert engine.files.set_aside == 1
    engine.source.skip(SkipRequest("raw", (1, 2), "sent again"))
    assert engine.files.set_aside == 0
    log = logged(engine)
    assert (log["1.json"], log["2.json.gz"]) == (("recorded", None), ("skipped", "sent again"))
    landing.write("4.json", lines([reading("g4", NOON, value="1")]))
    engine.run_all()
    assert len(read(engine.root, "silver/clean")) == 3
    arrived, changed = freshness_of(engine)
    assert arrived < changed
    landing.write("5.json.gz", whole[: len(whole) // 2])
    engine.run_all()
    assert freshness_of(engine) == (arrived, changed), "a batch without a record"
    landing.write("6.json", lines([reading("g6", NOON + timedelta(hours=1), value="1")]))
    landing.write("7.json", lines([reading("g7", NOON, value="1")]))
    engine.list_new()
    engine.ingest(6)
    engine.catch_up()
    final = freshness_of(engine)[1]
    assert final > changed
    engine.ingest(7)
    engine.catch_up()
    late_at, unchanged = freshness_of(engine)
    assert (late_at > final, unchanged) == (True, final), "a batch of late rows"
    engine.drain()
    assert freshness_of(engine)[1] > late_at, "rows become final"


def test_a_bad_parquet_is_set_aside(spark: SparkSession, tmp_path: Path) -> None:
    landing = Landing(tmp_path / "landing")
    landing.write("1.parquet", b"PAR1 this is not Parquet PAR1")
    engine = engine_over(spark, tmp_path, landing, format="parquet").run_all()
    status, reason = logged(engine)["1.parquet"]
    assert status == "set_aside"
    assert reason
    assert read(engine.root, "bronze/raw") == []


def test_a_rewritten_file_is_an_error_with_its_remedy(spark: SparkSession, tmp_path: Path) -> None:
    landing = Landing(tmp_path / "landing")
    landing.write("1.json", lines([reading("a", NOON)]))
    engine = engine_over(spark, tmp_path, landing)
    engine.list_new()
    landing.write("1.json", lines([reading("b", NOON), reading("c", NOON)]))
    with pytest.raises(FileChangedError, match="1.json.*rewritten.*sequence 1") as listed:
        engine.list_new()
    assert "headgate files skip" in str(listed.value.remedy)
    with pytest.raises(FileChangedError, match="rewritten"):
        engine.ingest()
    assert read(engine.root, "bronze/raw") == []


def test_a_vanished_file_is_an_error_with_its_remedy(spark: SparkSession, tmp_path: Path) -> None:
    landing = Landing(tmp_path / "landing")
    path = landing.write("1.json", lines([reading("a", NOON)]))
    landing.write("2.json", lines([reading("b", NOON)]))
    engine = engine_over(spark, tmp_path, landing)
    engine.list_new()
    path.unlink()
    with pytest.raises(FileChangedError, match="1.json.*vanished") as caught:
        engine.ingest()
    assert "headgate files skip" in str(caught.value.remedy)


def test_hidden_and_unsettled_files_wait(spark: SparkSession, tmp_path: Path) -> None:
    landing = Landing(tmp_path / "landing")
    now = datetime.now(UTC)
    for name in (".1.json", "_2.json", "_temporary/3.json", ".staging/4.json"):
        landing.write(name, lines([reading("hidden", NOON)]))
    landing.write("5.json", lines([reading("old", NOON)]))
    landing.write("6.json", lines([reading("new", NOON)]), modified=now)
    engine = engine_over(spark, tmp_path, landing, settle="1 hour")
    assert engine.list_new()
    assert [f.path for f in engine.files_log.files] == ["5.json"]
    engine.now = now + timedelta(hours=1)
    assert not engine.list_new()
    assert [f.path for f in engine.files_log.files] == ["5.json", "6.json"]
