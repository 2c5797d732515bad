"""What is refused before a JVM starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.broker import running
from headgate.broker.errors import FolderError, NoJavaError
from headgate.errors import HeadgateError
from headgate.jars import java
from headgate.jars.java import Java


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Java and jars are there, as far as is asked."""
    monkeypatch.setattr(java, "find", lambda: Java(Path("java"), "17.0.1", 17))
    monkeypatch.setattr(running, "cached_jars", lambda _: ())


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoJavaError, match="Java was not found") as raised:
        running.start(tmp_path / "kafka")
    assert raised.value.exit_code == 8
    assert not (tmp_path / "kafka").exists()


def test_a_java_that_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find", lambda: Java(Path("/old/java"), "11.0.2", 11))
    with pytest.raises(NoJavaError, match=r"/old/java is Java 11\.0\.2"):
        running.start(tmp_path)


def test_no_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prepared: None) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(java, "find", lambda: Java(Path("java"), "17.0.1", 17))
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

    monkeypatch.setattr(Path, "touch", refuse)
    with pytest.raises(FolderError, match="Permission denied"):
        running.start(tmp_path)
