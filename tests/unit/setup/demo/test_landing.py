from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.setup.demo.feeding import next_sequence, write_slice


def test_a_slice_becomes_a_file_of_lines_with_its_time(tmp_path: Path) -> None:
    modified = datetime(2026, 5, 4, tzinfo=UTC)
    path = write_slice(tmp_path / "landing", 3, [b"a", b"b"], modified)
    assert path == tmp_path / "landing" / "0000000003.json"
    assert path.read_bytes() == b"a\nb\n"
    assert path.stat().st_mtime == modified.timestamp()
    assert list(path.parent.iterdir()) == [path]


def test_names_sort_in_sequence(tmp_path: Path) -> None:
    paths = [write_slice(tmp_path, n, [b"x"]) for n in (9, 10, 100)]
    assert sorted(paths) == paths
    assert next_sequence(tmp_path) == 101


def test_the_first_sequence_is_zero(tmp_path: Path) -> None:
    assert next_sequence(tmp_path / "nothing yet") == 0


def test_a_file_is_never_replaced(tmp_path: Path) -> None:
    write_slice(tmp_path, 0, [b"a"])
    with pytest.raises(FileExistsError):
        write_slice(tmp_path, 0, [b"b"])
    assert (tmp_path / "0000000000.json").read_bytes() == b"a\n"
