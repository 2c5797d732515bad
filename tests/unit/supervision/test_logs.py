from __future__ import annotations

from pathlib import Path

import pytest

from headgate.storage.layout import Layout
from headgate.supervision import logs


def test_logs_are_beside_the_tables(layout: Layout) -> None:
    assert logs.run_log(layout) == Path(layout.storage.root) / "_headgate" / "logs" / "run.log"


def test_tail_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    assert logs.tail(log, 2) == []
    log.write_bytes(b"one\ntwo \xff\nthree\n")
    assert logs.tail(log, 2) == ["two �", "three"]


def test_follow_yields_whole_lines_only(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("before\n")
    parts = iter(["ha", "lf\nnext\n"])

    def grow(_: float) -> None:
        with log.open("a") as file:
            file.write(next(parts))

    following = logs.follow(log, wait=grow)
    assert [next(following), next(following)] == ["half", "next"]


def test_a_large_log_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "KEPT", 3)
    log = tmp_path / "run.log"
    log.write_text("abc")
    logs.rotate(log)
    assert log.exists()
    log.write_text("abcd")
    logs.rotate(log)
    assert not log.exists()
    assert (tmp_path / "run.log.1").read_text() == "abcd"
