"""The storage seam on a local disk: names that are not valid text, writes that fail half way."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.lake.storage.files import FileNameError, Storage, stat_of
from headgate.lake.storage.tree import tree_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def test_a_name_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text("{}\n")
    (tmp_path / os.fsdecode(b"bad\xff.json")).touch()
    with pytest.raises(FileNameError, match=r"bad\\xff\.json"):
        list(Storage(str(tmp_path)).list())


@pytest.mark.parametrize(
    ("nanos", "expected"),
    [
        (-1, "1969-12-31 23:59:59.999999"),
        (1_772_366_400_123_456_789, "2026-03-01 12:00:00.123456"),
        (
            13_569_465_600_000_001_000,
            "2400-01-01 00:00:00.000001",
        ),
        (-11_676_096_000_000_000_000, "1600-01-01 00:00:00"),
        (-62_135_596_799_000_001_000, "0010-01-01 00:00:00.999999"),
        (9_999_999_999_999_123_456_000, "9989-12-31 23:59:59.123456"),
    ],
)
def test_the_time_of_a_file_never_wraps_around(nanos: int, expected: str) -> None:
    """Two times outside the range still differ, unless their microseconds are the same."""
    found = os.stat_result((0o100644, 1, 1, 1, 0, 0, 3, 0, 0, 0), {"st_mtime_ns": nanos})
    stat = stat_of("a", found)
    assert (stat.path, stat.size) == ("a", 3)
    assert stat.modified.replace(tzinfo=None).isoformat(" ") == expected


@pytest.mark.parametrize("year", [1902, 1970, 2400])
def test_times_that_a_disk_can_store(tmp_path: Path, year: int) -> None:
    at = datetime(year, 5, 4, 12, 0, 0, 7, tzinfo=UTC)
    (tmp_path / "a").touch()
    nanos = (at - EPOCH) // timedelta(microseconds=1) * 1000
    os.utime(tmp_path / "a", ns=(nanos, nanos))
    stat = Storage(str(tmp_path)).stat("a")
    assert stat is not None
    assert stat.modified == at
    assert tree_of(Storage(str(tmp_path)), ()).files == [stat]


def test_a_write_that_fails_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    in_the_way = tmp_path / "status.json" / "kept"
    in_the_way.mkdir(parents=True)
    with pytest.raises(OSError, match="status.json"):
        Storage(str(tmp_path)).write("status.json", b"new")
    assert [f.name for f in tmp_path.iterdir()] == ["status.json"]
    assert in_the_way.is_dir()
