from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from headgate.commands import rendered
from headgate.setup.doctor import machine

GIB = 1024**3


@pytest.fixture
def limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 16 GiB whose container limit is read from the returned file."""
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=16 * GIB))
    monkeypatch.setattr(machine, "_CONTAINER_LIMITS", (tmp_path / "memory.max",))
    return tmp_path / "memory.max"


@pytest.mark.parametrize("limit", [None, "max\n", f"{4 * GIB}\n"])
def test_enough_memory(limits: Path, limit: str | None) -> None:
    if limit is not None:
        limits.write_text(limit)
    assert machine.memory().ok


def test_the_limit_of_a_container_counts(limits: Path) -> None:
    limits.write_text(f"{GIB}\n")
    found = machine.memory()
    assert not found.ok
    assert found.found == "1.0 GB"


def test_jars_that_were_never_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_JARS", str(tmp_path / "nowhere"))
    found = machine.pinned_jars()
    assert found.ok
    assert found.found.startswith("none of them yet: only Kafka needs them")
    assert "headgate doctor --fetch-jars" in found.found
    assert not (tmp_path / "nowhere").exists()


def test_a_damaged_jar_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_JARS", str(tmp_path))
    (tmp_path / "delta-storage-4.4.0.jar").write_bytes(b"cut")
    assert "delta-storage-4.4.0.jar is damaged" in machine.pinned_jars().found


def test_a_broker_that_was_never_wanted_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADGATE_JARS", str(tmp_path / "nowhere"))
    found = machine.broker_jars()
    assert found.ok
    assert rendered(found.found).startswith("none of them yet: headgate kafka up fetches them")


def test_a_damaged_broker_jar_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_JARS", str(tmp_path))
    (tmp_path / "kafka_2.13-4.3.1.jar").write_bytes(b"cut")
    found = machine.broker_jars()
    assert not found.ok
    assert found.found.startswith("kafka_2.13-4.3.1.jar is damaged")
    assert "headgate doctor --fetch-jars" in found.remedy
