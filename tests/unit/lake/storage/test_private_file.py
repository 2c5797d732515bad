"""Files that appear with their whole text or not at all."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from headgate.lake.storage.private_file import create_private
from tests.support.full_disk import run_on_full_disk


def is_whole(text: str) -> bool:
    return text.endswith("!")


def test_only_this_user_can_read_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert create_private(tmp_path / "file", "a!", is_whole)
    finally:
        os.umask(before)
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}
    assert (tmp_path / "file").read_text() == "a!"


def test_a_whole_file_is_kept(tmp_path: Path) -> None:
    assert create_private(tmp_path / "file", "a!", is_whole)
    assert not create_private(tmp_path / "file", "b!", is_whole)
    assert (tmp_path / "file").read_text() == "a!"


@pytest.mark.parametrize("damaged", [b"", b"a", b"\xff!"])
def test_a_damaged_file_counts_as_missing(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / "file").write_bytes(damaged)
    assert create_private(tmp_path / "file", "b!", is_whole)
    assert (tmp_path / "file").read_text() == "b!"


@pytest.mark.parametrize("before", [None, "a"])
def test_a_full_disk_changes_nothing(tmp_path: Path, before: str | None) -> None:
    file = tmp_path / "file"
    if before is not None:
        file.write_text(before)
    said = run_on_full_disk(
        "from headgate.lake.storage.private_file import create_private\n"
        "create_private(Path(sys.argv[1]), 'b!', lambda text: text.endswith('!'))",
        file,
    )
    assert said.startswith("OSError: [Errno 27]")
    assert (file.read_text() if file.exists() else None) == before
    assert {each.name for each in tmp_path.iterdir()} <= {"file", "file.lock"}, "no draft is left"


def test_a_whole_file_needs_no_space(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a!")
    assert not create_private(tmp_path / "file", "b!", is_whole)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("before", [None, ""])
def test_one_of_many_creates_it(tmp_path: Path, before: str | None) -> None:
    file, many = tmp_path / "file", 16
    if before is not None:
        file.write_text(before)
    ready = Barrier(many)

    def create(number: int) -> bool:
        ready.wait()
        return create_private(file, f"{number}!", is_whole)

    with ThreadPoolExecutor(many) as threads:
        created = list(threads.map(create, range(many)))
    assert created.count(True) == 1
    assert file.read_text() == f"{created.index(True)}!"
