from __future__ import annotations

import os
from pathlib import Path

import pytest

from headgate.errors import HeadgateError
from headgate.machine.jars import LockSet, cache


def fill(folder: Path) -> None:
    (folder / "one-1.0.jar").write_bytes(b"1")
    (folder / "two-1.0.jar").write_bytes(b"22")


def test_jars_come_in_the_order_of_the_lock(folder: Path) -> None:
    fill(folder)
    assert cache.cached_jars() == (folder / "one-1.0.jar", folder / "two-1.0.jar")


def test_each_lock_has_jars_of_its_own(folder: Path) -> None:
    (folder / "three-1.0.jar").write_bytes(b"333")
    assert cache.cached_jars(LockSet.KAFKA) == (folder / "three-1.0.jar",)
    with pytest.raises(HeadgateError, match=r"one-1\.0\.jar: missing"):
        cache.cached_jars()


def test_a_missing_jar_is_named_with_its_remedy(folder: Path) -> None:
    fill(folder)
    (folder / "two-1.0.jar").unlink()
    with pytest.raises(HeadgateError, match=r"two-1\.0\.jar: missing") as raised:
        cache.cached_jars()
    assert "headgate doctor --fetch-jars" in raised.value.remedy
    assert "one-1.0.jar" not in str(raised.value)


@pytest.mark.parametrize("content", [b"9", b"111"])
def test_a_damaged_jar_is_refused(folder: Path, content: bytes) -> None:
    fill(folder)
    (folder / "one-1.0.jar").write_bytes(content)
    with pytest.raises(HeadgateError, match=r"one-1\.0\.jar: damaged"):
        cache.cached_jars()


def test_a_jar_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(folder)
    cache.cached_jars()
    monkeypatch.setattr(cache, "matches", lambda *_: pytest.fail("hashed twice"))
    assert len(cache.cached_jars()) == 2


def test_a_touched_jar_is_read_again(folder: Path) -> None:
    fill(folder)
    cache.cached_jars()
    (folder / "two-1.0.jar").write_bytes(b"33")
    os.utime(folder / "two-1.0.jar", ns=(0, 0))
    with pytest.raises(HeadgateError, match=r"two-1\.0\.jar: damaged"):
        cache.cached_jars()


def test_a_damaged_memory_is_no_harm(folder: Path) -> None:
    fill(folder)
    (folder / "verified.json").write_text("{")
    assert len(cache.cached_jars()) == 2


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("HEADGATE_JARS", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(HeadgateError, match="no home folder"):
        cache.cache_folder()
