from __future__ import annotations

from pathlib import Path

import pytest

from headgate.setup.doctor.machine import java

MODERN = 'openjdk version "17.0.15" 2025-04-15\\nOpenJDK Runtime Environment'


def fake(folder: Path, says: str, exit_code: int = 0) -> Path:
    """A java in ``folder`` that prints ``says`` where java prints its version."""
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "java"
    script.write_text(f"#!/bin/sh\nprintf '{says}\\n' >&2\nexit {exit_code}\n")
    script.chmod(0o755)
    return script


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the whole PATH; JAVA_HOME is not set."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.mark.parametrize("version", ["17.0.15", "17", "21.0.2", "21-ea"])
def test_a_supported_java_on_path_is_fine(path: Path, version: str) -> None:
    script = fake(path, f'openjdk version "{version}" 2025-04-15')
    found = java()
    assert found.ok
    assert found.found == f"{version} ({script})"


@pytest.mark.parametrize("version", ["1.8.0_292", "11.0.20", "18.0.1", "25"])
def test_another_version_is_named_with_the_way_out(path: Path, version: str) -> None:
    fake(path, f'openjdk version "{version}" 2025-04-15')
    found = java("linux")
    assert not found.ok
    assert version in found.found
    assert "apt install openjdk-17-jre-headless" in found.remedy
    assert "JAVA_HOME" in found.remedy


@pytest.mark.parametrize(("platform", "command"), [("linux", "apt"), ("darwin", "brew")])
def test_no_java_at_all(path: Path, platform: str, command: str) -> None:
    found = java(platform)
    assert not found.ok
    assert found.found == "none on PATH"
    assert command in found.remedy


def test_java_home_wins_over_path(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(path, MODERN)
    fake(tmp_path / "old" / "bin", 'java version "11.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    assert not java().ok


def test_a_java_home_without_java_is_reported(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(path, MODERN)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    found = java()
    assert not found.ok
    assert str(tmp_path / "gone") in found.found
    assert "unset JAVA_HOME" in found.remedy


def test_a_stub_that_prints_no_version(path: Path) -> None:
    fake(path, "The operation couldn't be completed.".replace("'", ""), exit_code=1)
    found = java()
    assert not found.ok
    assert "of unknown version" in found.found


@pytest.mark.parametrize(
    ("variable", "value", "why"),
    [
        ("HEADGATE_DRIVER_MEMORY", "2x", "is '2x', but must be an amount such as"),
        ("HEADGATE_DRIVER_MEMORY", "600m", "is 600m, and a driver needs at least 1g"),
        ("HEADGATE_DRIVER_MEMORY", "2", "is 2, and a driver needs at least 1g"),
        ("HEADGATE_DRIVER_MEMORY", "9999999t", "heap"),
        ("HEADGATE_DRIVER_JAVA_OPTIONS", "-XX:+NoSuchOption", "NoSuchOption"),
        ("HEADGATE_DRIVER_JAVA_OPTIONS", "-Dname='open", "cannot be read: No closing quotation"),
        ("HEADGATE_DRIVER_JAVA_OPTIONS", "-Xmx4g", "the heap is given by HEADGATE_DRIVER_MEMORY"),
    ],
)
def test_settings_with_which_a_driver_does_not_start(
    variable: str, value: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    found = java()
    assert not found.ok
    assert why in found.found
    assert found.remedy == (
        "Correct HEADGATE_DRIVER_MEMORY or HEADGATE_DRIVER_JAVA_OPTIONS in the environment"
    )


@pytest.mark.parametrize("heap", ["", "1g", "1024M", "3G"])
def test_settings_with_which_a_driver_starts(heap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_DRIVER_MEMORY", heap)
    monkeypatch.setenv("HEADGATE_DRIVER_JAVA_OPTIONS", "-Da='b c' -XX:+UseSerialGC")
    assert java().ok
