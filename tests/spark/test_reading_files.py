"""The files of a landing folder, read in Python as Spark reads them."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal as Number
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headgate.flow.sources.files.csv_format import Dialect, Header
from headgate.flow.sources.files.csv_rows import line_documents
from headgate.flow.sources.files.declared import FilesSource
from headgate.flow.sources.files.log import LoggedFile
from headgate.flow.sources.files.parts import parts_of_files
from headgate.lake.storage.files import Storage
from headgate.lake.tables.record_shape import record_schema
from tests.support.landing import ARRIVED
from tests.support.spark_files import (
    spark_cells,
    spark_csv_rows,
    spark_lines,
    spark_parquet_rows,
    split_size,
)

pytestmark = pytest.mark.spark

_TEXT_TO_DOUBLE = pa.map_(pa.string(), pa.float64())
_NANOSECONDS = pa.array([1], pa.timestamp("ns"))
_PIECES = (b"", b"", b"\r", b" \t", b"\t\r", b"{}", b"{}\r", b" x", b"\x00", b"\xff\xfd", b"y" * 9)


def _random_text(random_: random.Random) -> bytes:
    mark = b"\xef\xbb\xbf" * random_.choice((0, 0, 0, 1, 2))
    pieces = random_.choices(_PIECES, k=random_.randrange(20))
    return mark + b"\n".join(pieces) + b"\n" * random_.randrange(3)


def test_lines_have_the_positions_that_spark_gives(spark: SparkSession, tmp_path: Path) -> None:
    random_ = random.Random(7)
    for number in range(80):
        content = _random_text(random_)
        if number % 8 == 0:
            (tmp_path / f"{number:02d}.json.gz").write_bytes(gzip.compress(content))
        else:
            (tmp_path / f"{number:02d}.json").write_bytes(content)
    paths = sorted(tmp_path.iterdir())
    with split_size(spark, 16):
        lines = spark_lines(spark, paths).collect()
    expected = sorted((row["name"], row["position"], bytes(row["value"])) for row in lines)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("headgate.flow.sources.files.parts.SPLIT", 16)
        patched.setattr("headgate.flow.sources.files.parts.BLOCK", 5)
        source = FilesSource(str(tmp_path), "json")
        rows = [row for path in paths for row in _read(source, path).to_pylist()]
    found = [(row["file"], row["offset"], row["value"]) for row in rows]
    assert len(expected) > 200
    assert found == expected


@pytest.mark.parametrize("delimiter", [",", ";", "\t", " "])
def test_cells_are_those_that_spark_reads(spark: SparkSession, delimiter: str) -> None:
    for width in (1, 2, 3):
        header = ["x", "y", "z"][:width]
        lines = pa.array([*_random_cells(random.Random(width), delimiter)], pa.binary())
        frame = spark.createDataFrame(pa.table({"value": lines}))
        theirs = spark_cells(frame, header, delimiter).toArrow().to_pydict()
        ours, details = line_documents(
            pa.array(theirs["value"]), Header(tuple(header), width), Dialect(delimiter)
        )
        # Spark guesses what a malformed cell means.
        rows = zip(*theirs.values(), ours.to_pylist(), details.to_pylist(), strict=True)
        alike = [
            row
            for row in rows
            if "the closing quote" not in str(row[-1]) and "opens" not in str(row[-1])
        ]
        for line, expected, found, _ in alike:
            assert _decoded(expected) == _decoded(found), line
        assert len(alike) > 1000
        assert 0 < ours.null_count < len(ours)


def _decoded(document: bytes | None) -> dict[str, str] | None:
    return None if document is None else json.loads(document)


def _random_cells(random_: random.Random, delimiter: str) -> Iterator[bytes]:
    letters = [
        "a",
        "bc",
        delimiter,
        delimiter,
        '"',
        '"',
        " ",
        "\\",
        "\r",
        "é",
        ";",
        "\x1f",
    ]
    for _ in range(4000):
        line = "".join(random_.choices(letters, k=random_.randrange(1, 14)))
        if line.strip(" \t\r"):
            yield line.encode()


CSV_FILES = (
    b'a,b\n1,2\n\n \n3\n4,5,6\n"x\ny",2\n"",z\n5" pipe,1\n2,3\n',
    b"\n\na,b\n1,2\n",
    b'\xef\xbb\xbfa,b\r\n1,2\r\n\r\n3,"x\r\ny"\r\n4,"x\ny"\n5,6\r\n',
    b'"a\n",b\n1,"x y"\n,\n"",""\n\r\n  \n#c,1\n"p\n""q""\n" ,"r\n"\n',
    b'a\r"1\r2"\r3\n4\r',
    b' a ,"b"\n 1 ,"2"\n',
    b"a,b\n",
    b"a,b",
)


def test_csv_with_line_breaks_in_cells(spark: SparkSession, tmp_path: Path) -> None:
    fitting = 0
    for content in CSV_FILES:
        (tmp_path / "a.csv").write_bytes(content)
        source = FilesSource(str(tmp_path), "csv", csv_multiline=True)
        found = _read(source, tmp_path / "a.csv")
        rows = found.select(["value", "document"]).to_pylist()
        given = spark_csv_rows(spark, tmp_path / "a.csv")
        # Spark skips empty lines alone.
        expected = [row for row in given if not _is_blank(row)]
        for row, theirs in zip(rows, expected, strict=True):
            # Spark pads or cuts rows that do not fit the header, and keeps blanks in names.
            if row["document"] is not None:
                assert _cells(row["document"]) == _cells(theirs), content
                assert row["document"] == row["value"]
                fitting += 1
        assert found["offset"].to_pylist() == list(range(len(found)))
    assert fitting == 19


def _is_blank(row: bytes) -> bool:
    cells = _cells(row)
    return bool(cells) and not any(cell.strip(" \t\r") for cell in cells)


def _cells(row: bytes) -> list[str]:
    return [*json.loads(row).values()]


def _read(source: FilesSource, path: Path) -> pa.Table:
    file = LoggedFile(0, path.name, path.stat().st_size, ARRIVED, ARRIVED)
    blocks = [
        b for part in parts_of_files(Storage(source.path), source, [file]) for b in part.blocks()
    ]
    schema = record_schema("file", has_document=source.format == "csv")
    return pa.concat_tables([schema.empty_table(), *blocks])


def _seconds(*values: str | None) -> list[datetime | None]:
    return [None if value is None else datetime.fromisoformat(value) for value in values]


def _columns() -> dict[str, pa.Array]:
    """Columns of four values, which Spark writes in full; most have a null."""
    times = _seconds("2026-03-01T11:00:00", "1500-01-01T01:01:01.120", "9999-12-31T23:59:59", None)
    number = [Number("1.50"), Number("-0.01"), Number("9" * 32 + ".00"), None]
    pair = pa.struct([("a", pa.int8()), ("b", pa.list_(pa.string()))])
    return {
        "bool": pa.array([True, False, True, None]),
        "u64": pa.array([2**64 - 1, 0, 7, None], pa.uint64()),
        "i8": pa.array([-128, 0, 127, None], pa.int8()),
        "double": pa.array([1e10, 1.5, float("nan"), None]),
        "small": pa.array([1e-4, -0.0, 0.001, 123456789.125]),
        "large": pa.array([1e7, 9999999.5, -float("inf"), -1.5e300]),
        "float": pa.array([0.1, 1e10, 3.4e38, None], pa.float32()),
        "day": pa.array([date(2026, 3, 1), date(1, 1, 1), date(9999, 12, 31), None]),
        "time": pa.array(times, pa.timestamp("us", "UTC")),
        "local": pa.array(times, pa.timestamp("us")),
        "ms": pa.array(times, pa.timestamp("ms", "UTC")),
        "decimal": pa.array(number, pa.decimal128(38, 2)),
        "tiny": pa.array([Number("1e-10"), Number(0), Number(1), None], pa.decimal128(20, 10)),
        "binary": pa.array([b"ab", b"", b"\xff\x00", None]),
        "text": pa.array(['é\u2028\x01/"\\\x7f', "\t\n\r\b\f", "", None]),
        "names": pa.array(["x", "y", "x", None]).dictionary_encode(),
        "struct": pa.array([{"a": 1, "b": ["x", None]}, {}, None, {"a": 2}], pair),
        "list": pa.array([[1, None], [], None, [3]]),
        "structs": pa.array([[{"a": 1}, None], [{}], None, []], pa.list_(pair)),
        "map": pa.array([[("k", 1.5), ("j", None)], [], None, [("", 2)]], _TEXT_TO_DOUBLE),
        "a.b c": pa.array([1, None, None, None]),
    }


def test_parquet_rows_are_rendered_as_spark_does(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table(_columns()), tmp_path / "a.parquet", row_group_size=3)
    found = _read(FilesSource(str(tmp_path), "parquet"), tmp_path / "a.parquet")
    assert found.schema == record_schema("file")
    # Bytes that are text are that text, and other bytes cannot be mistaken for a text.
    ours = {b'"binary":"YWI="': b'"binary":"ab"', b'"/wA="': b'{"base64":"/wA="}'}
    expected = spark_parquet_rows(spark, tmp_path / "a.parquet")
    for theirs, text in ours.items():
        assert sum(theirs in row for row in expected) == 1
        expected = [row.replace(theirs, text) for row in expected]
    assert found["value"].to_pylist() == expected
    assert found["offset"].to_pylist() == [0, 1, 2, 3]


def test_int96_is_an_instant(spark: SparkSession, tmp_path: Path) -> None:
    at, time = _seconds("2026-03-01T11:00:00.120"), pa.timestamp("us")
    columns = {
        "at": pa.array(at, time),
        "struct": pa.array([{"at": at[0]}], pa.struct([("at", time)])),
        "list": pa.array([at], pa.list_(time)),
        "map": pa.array([[("k", at[0])]], pa.map_(pa.string(), time)),
    }
    table = pa.table(columns)
    pq.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    found = _read(FilesSource(str(tmp_path), "parquet"), tmp_path / "a.parquet")
    assert found["value"].to_pylist() == spark_parquet_rows(spark, tmp_path / "a.parquet")


def test_times_keep_digits_that_spark_would_cut(tmp_path: Path) -> None:
    at = _seconds("2026-03-01T11:00:00.123456")
    table = pa.table({"us": pa.array(at, pa.timestamp("us", "UTC")), "ns": _NANOSECONDS})
    pq.write_table(table, tmp_path / "a.parquet")
    (value,) = _read(FilesSource(str(tmp_path), "parquet"), tmp_path / "a.parquet")["value"]
    assert value.as_py() == (
        b'{"us":"2026-03-01T11:00:00.123456Z","ns":"1970-01-01T00:00:00.000000001"}'
    )
