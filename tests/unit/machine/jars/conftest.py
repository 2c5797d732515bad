from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from headgate.machine.jars import cache, ivy
from headgate.machine.jars.lock import Jar, LockSet


def jar(name: str, content: bytes) -> Jar:
    return Jar(f"org.example:{name}:1.0", len(content), hashlib.sha256(content).hexdigest())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty jar cache; Spark's lock has jars ``one`` and ``two``, Kafka's ``three``."""
    pinned = {
        LockSet.SPARK: (jar("one", b"1"), jar("two", b"22")),
        LockSet.KAFKA: (jar("three", b"333"),),
    }
    for module in (cache, ivy):
        monkeypatch.setattr(module, "locked", lambda lock=LockSet.SPARK: pinned[lock])
    monkeypatch.setenv("HEADGATE_JARS", str(tmp_path / "jars"))
    (tmp_path / "jars").mkdir()
    return tmp_path / "jars"
