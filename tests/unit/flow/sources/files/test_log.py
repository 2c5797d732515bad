"""The files log: what it knows of a file after any events."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headgate.flow.sources.files.log import FILES_LOG, FilesLog
from headgate.lake.storage.files import Stat, Storage

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
YEAR = timedelta(days=365)


@pytest.fixture
def log(tmp_path: Path) -> FilesLog:
    log = FilesLog.of(Storage(str(tmp_path)), "shop", "orders")
    log.shape.create(FILES_LOG)
    log.load()
    return log


def read_again(log: FilesLog) -> FilesLog:
    again = FilesLog(log.table)
    again.load()
    return again


def test_a_file_is_seen_at_its_time_or_when_it_is_recorded_if_that_is_earlier(
    log: FilesLog,
) -> None:
    """A copied clock may lie years ahead: its file must not make events of those years valid."""
    files = [Stat("past", 1, NOW - YEAR), Stat("ahead", 1, NOW + YEAR)]
    log.record(files, NOW)
    for known in (log, read_again(log)):
        assert [(f.path, f.modified, f.seen) for f in known.files] == [
            ("past", NOW - YEAR, NOW - YEAR),
            ("ahead", NOW + YEAR, NOW),
        ]


@pytest.mark.parametrize("status", ["set_aside", "skipped", "withdrawn"])
def test_later_events_do_not_change_when_a_file_was_seen(log: FilesLog, status: str) -> None:
    """Its records have stamps that depend on it."""
    log.record([Stat("past", 1, NOW - YEAR), Stat("ahead", 1, NOW + YEAR)], NOW)
    at: dict[str, Any] = {"modified": NOW + timedelta(days=2), "status": status, "reason": "why"}
    log.append([replace(f, **at) for f in log.files], NOW + timedelta(days=1))
    for known in (log, read_again(log)):
        assert [(f.status, f.seen) for f in known.files] == [(status, NOW - YEAR), (status, NOW)]


def test_a_commit_has_the_number_of_files_that_are_set_aside(log: FilesLog) -> None:
    """So that a health check need not read the log."""

    def kept() -> tuple[int, int]:
        return log.table.refresh().total.get("set_aside", 0), read_again(log).set_aside

    log.record([Stat(name, 1, NOW) for name in "abc"], NOW)
    assert kept() == (0, 0)
    log.append([replace(file, status="set_aside", reason="why") for file in log.files[:2]], NOW)
    assert kept() == (2, log.set_aside) == (2, 2)
    log.append([replace(log.files[0], status="skipped")], NOW)
    assert kept() == (1, log.set_aside) == (1, 1)
    log.append([replace(log.files[1], status="withdrawn")], NOW)
    assert kept() == (0, log.set_aside) == (0, 0)
