"""The storage seam on a local disk: names that are not valid text, writes that fail half way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headgate.storage.files import FileNameError, Storage


def test_a_name_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text("{}\n")
    (tmp_path / os.fsdecode(b"bad\xff.json")).touch()
    with pytest.raises(FileNameError, match=r"bad\\xff\.json"):
        list(Storage(str(tmp_path)).list())


def test_a_write_that_fails_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    in_the_way = tmp_path / "status.json" / "kept"
    in_the_way.mkdir(parents=True)
    with pytest.raises(OSError, match="status.json"):
        Storage(str(tmp_path)).write("status.json", b"new")
    assert [f.name for f in tmp_path.iterdir()] == ["status.json"]
    assert in_the_way.is_dir()
