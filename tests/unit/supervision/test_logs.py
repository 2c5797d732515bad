from __future__ import annotations

from pathlib import Path

from headgate.lake.storage.layout import Layout
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


def test_follow_goes_on_where_a_log_begins_anew(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("before\n" * 10)
    parts = iter(["one\n", None, "two\n"])

    def grow(_: float) -> None:
        part = next(parts)
        with log.open("a") as file:
            if part is None:
                file.truncate(0)
            else:
                file.write(part)

    following = logs.follow(log, wait=grow)
    assert [next(following), next(following)] == ["one", "two"]
