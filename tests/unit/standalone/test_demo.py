"""The demo's stream may run for weeks: its landing folder does not grow for ever."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from headgate.sources.files.log import LoggedFile
from headgate.standalone.demo import KEPT, outlived

NOW = datetime(2026, 5, 4, tzinfo=UTC)


def file(sequence: int, age: timedelta) -> LoggedFile:
    return LoggedFile(sequence, f"{sequence}.json", 1, NOW - age)


def test_what_was_read_long_ago_goes_and_nothing_else() -> None:
    old, young = KEPT + timedelta(seconds=1), KEPT
    files = [file(1, old), file(2, old), file(3, young), file(4, old), file(5, old)]
    assert outlived(files, 3, NOW) == ["1.json", "2.json"]
    assert outlived(files, 5, NOW) == ["1.json", "2.json", "4.json"]
    assert outlived(files[:1], 1, NOW) == []
    assert outlived([], 0, NOW) == []
