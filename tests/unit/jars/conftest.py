from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from headgate.jars import cache, ivy
from headgate.jars.lock import Jar


def jar(name: str, content: bytes) -> Jar:
    return Jar(f"org.example:{name}:1.0", len(content), hashlib.sha256(content).hexdigest())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty jar cache and a lock of two tiny jars, ``one`` and ``two``."""
    pinned = (jar("one", b"1"), jar("two", b"22"))
    monkeypatch.setattr(cache, "locked", lambda: pinned)
    monkeypatch.setattr(ivy, "locked", lambda: pinned)
    monkeypatch.setenv("HEADGATE_JARS", str(tmp_path / "jars"))
    (tmp_path / "jars").mkdir()
    return tmp_path / "jars"
