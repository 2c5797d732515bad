from __future__ import annotations

import time
from pathlib import Path

import pytest

from headgate.machine.process_tree import rotation


def test_a_large_log_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "KEPT", 3)
    log = tmp_path / "run.log"
    log.write_text("abc")
    rotation.rotate(log)
    assert log.read_text() == "abc"
    with log.open("a") as writer:
        writer.write("d")
        writer.flush()
        rotation.rotate(log)
        writer.write("e")
    assert log.read_text() == "e"
    assert (tmp_path / "run.log.1").read_text() == "abcd"


def test_logs_are_kept_bounded_while_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotation, "KEPT", 3)
    log = tmp_path / "run.log"
    log.write_text("abcd")
    rotation.keep_bounded((tmp_path / "not there", log), every=0.01)
    until = time.monotonic() + 10
    while log.stat().st_size:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert (tmp_path / "run.log.1").read_text() == "abcd"


def test_a_log_that_cannot_be_kept_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No error is raised: a full disk must not end the supervisor of all pipelines."""
    monkeypatch.setattr(rotation, "KEPT", 3)
    log = tmp_path / "run.log"
    log.write_text("abcd")
    (tmp_path / "run.log.1").mkdir()
    rotation.rotate(log)
    assert log.read_text() == "abcd"
