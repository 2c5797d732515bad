"""Bounds in a file's statistics, from its footer."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.flow.bronze.decoding.times import FIRST, LAST
from headgate.lake.storage.files import Storage
from headgate.lake.tables.arrow import describe


def test_they_are_texts_of_times_from_the_first_to_the_last(tmp_path: Path) -> None:
    rows = pa.table({"t": pa.array((FIRST, LAST), pa.timestamp("us", "UTC"))})
    pq.write_table(rows, tmp_path / "1.parquet", write_page_checksum=True)
    (file,) = describe(Storage(str(tmp_path)), "", "t")
    found = json.loads(file.stats)
    assert found["numRecords"] == 2
    assert found["minValues"] == {"t": "0001-01-01T00:00:00.000000Z"}
    assert found["maxValues"] == {"t": "9999-12-31T23:59:59.999999Z"}


TIMES = pa.timestamp("us", "UTC")


def bounds_of(folder: Path, *groups: list[int | None], **options: object) -> tuple[str, str] | None:
    """The bounds of a file with a row group for each list of times."""
    schema = pa.schema([("t", TIMES)])
    with pq.ParquetWriter(
        folder / "1.parquet", schema, write_page_checksum=True, **options
    ) as file:
        for times in groups:
            file.write_table(pa.table({"t": pa.array(times, TIMES)}))
    (described,) = describe(Storage(str(folder)), "", "t")
    found = json.loads(described.stats)
    assert found["numRecords"] == sum(map(len, groups))
    return (found["minValues"]["t"], found["maxValues"]["t"]) if "minValues" in found else None


def test_a_row_group_without_a_time_leaves_the_file_its_bounds(tmp_path: Path) -> None:
    """Records without a time, such as unparsable ones, are in a row group of their own. Without
    bounds, the file would be read whenever an earlier id is searched."""
    expected = ("1970-01-01T00:00:00.000005Z", "1970-01-01T00:00:00.000009Z")
    assert bounds_of(tmp_path, [5, None, 9], [None]) == expected
    assert bounds_of(tmp_path, [None, None], [9], [None], [5, 7]) == expected


def test_a_file_that_may_have_any_time_has_no_bounds(tmp_path: Path) -> None:
    assert bounds_of(tmp_path, [None], [None, None]) is None
    assert bounds_of(tmp_path) is None
    assert bounds_of(tmp_path, [5, 9], [None], write_statistics=False) is None
