"""Bounds in a file's statistics, from its footer."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.bronze.decoding.times import FIRST, LAST
from headgate.storage.files import Storage
from headgate.tables.arrow import describe


@pytest.mark.parametrize(
    ("times", "bounds"),
    [
        ((FIRST, LAST), ("0001-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z")),
        ((FIRST - 1, 0), None),
        ((0, LAST + 1), None),
    ],
)
def test_there_are_none_where_python_has_no_such_time(
    tmp_path: Path, times: tuple[int, int], bounds: tuple[str, str] | None
) -> None:
    rows = pa.table({"t": pa.array(times, pa.timestamp("us", "UTC"))})
    pq.write_table(rows, tmp_path / "1.parquet", write_page_checksum=True)
    (file,) = describe(Storage(str(tmp_path)), "", "t")
    found = json.loads(file.stats)
    assert found["numRecords"] == 2
    assert bounds == (
        (found["minValues"]["t"], found["maxValues"]["t"]) if "minValues" in found else None
    )
