"""What is refused before a JVM starts."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from headgate.errors import HeadgateError
from headgate.setup.broker import running
from headgate.setup.broker.client import FolderError


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check for jars finds them."""
    monkeypatch.setattr(running, "cached_jars", lambda _: ())


def test_no_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_JARS", str(tmp_path / "none"))
    with pytest.raises(HeadgateError, match=r"kafka_2\.13-4\.3\.1\.jar: missing") as raised:
        running.start(tmp_path / "kafka")
    assert "headgate doctor --fetch-jars" in raised.value.remedy


@pytest.mark.usefixtures("prepared")
def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FolderError, match="file/kafka cannot be written") as raised:
        running.start(tmp_path / "file" / "kafka")
    assert "--root" in raised.value.remedy


@pytest.mark.usefixtures("prepared")
def test_a_folder_without_rights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(FolderError, match="Permission denied"):
        running.start(tmp_path)
