"""The storage seam on a local disk: names that are no text, writes that fail half way."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.storage.files import FileNameError, Storage


def test_a_name_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text("{}\n")
    (tmp_path / os.fsdecode(b"bad\xff.json")).touch()
    with pytest.raises(FileNameError, match=r"bad\\xff\.json"):
        list(Storage(str(tmp_path)).list())


@pytest.fixture
def files_of_at_most_1_kib() -> Iterator[None]:
    """As on a full disk, a write fails with OSError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    signal.signal(signal.SIGXFSZ, before)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, files_of_at_most_1_kib: None
) -> None:
    storage = Storage(str(tmp_path))
    storage.write("status.json", b"old")
    with pytest.raises(OSError, match="File too large"):
        storage.write("status.json", b"x" * 10_000)
    assert storage.read("status.json") == b"old"
    assert [f.name for f in tmp_path.iterdir()] == ["status.json"]
