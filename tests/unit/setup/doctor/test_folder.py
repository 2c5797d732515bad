from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest

from headgate.setup.doctor import CheckResult, folder


def refuse(*_: object, **__: object) -> NoReturn:
    raise PermissionError(13, "Permission denied")


@pytest.mark.parametrize("check", [folder.disk, folder.writing, folder.renaming])
def test_a_root_that_is_not_there_yet_is_fine_and_stays_so(
    check: Callable[[Path], CheckResult], tmp_path: Path
) -> None:
    root = tmp_path / "lake" / "deep"
    finding = check(root)
    assert finding.ok, finding
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=300 * 1024**2))
    found = folder.disk(tmp_path)
    assert not found.ok
    assert found.found.startswith("300.0 MB free")


def test_a_folder_that_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refuse)
    found = folder.writing(tmp_path / "lake")
    assert not found.ok
    assert f"chown -R $USER {tmp_path}" in found.remedy


def test_a_root_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("")
    assert not folder.writing(tmp_path / "lake").ok
    assert not folder.renaming(tmp_path / "lake").ok


def test_a_share_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", refuse)
    found = folder.renaming(tmp_path)
    assert not found.ok
    assert "local disk" in found.remedy


def test_a_share_that_overwrites_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", shutil.copy)
    assert not folder.renaming(tmp_path).ok
    assert list(tmp_path.iterdir()) == []
