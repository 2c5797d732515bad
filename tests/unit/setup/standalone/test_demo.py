"""The demo's stream may run for weeks: its landing folder does not grow for ever."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from headgate.flow.sources.files.log import LoggedFile
from headgate.lake.control.ownership import Owner
from headgate.lake.storage.layout import Layout
from headgate.setup.standalone.demo import KEPT, PIPELINE, children, outlived
from tests.unit.supervision.conftest import lease

NOW = datetime(2026, 5, 4, tzinfo=UTC)


def file(sequence: int, age: timedelta) -> LoggedFile:
    return LoggedFile(sequence, f"{sequence}.json", 1, NOW - age, NOW - age)


def test_only_a_new_project_is_started_beside_airflow(tmp_path: Path) -> None:
    """A person may have stopped the stream of a project that is not new."""
    started = children(tmp_path)["driver"].command
    assert started[-4:] == ("start", str(tmp_path / "pipelines/auctions.yml"), *started[-2:])
    assert started[-2:] == ("--root", str(tmp_path / "lake"))
    lease(Layout.of(str(tmp_path / "lake"), PIPELINE), Owner.here(), released=True)
    assert {*children(tmp_path)} == {"producer"}


def test_what_was_read_long_ago_goes_and_nothing_else() -> None:
    old, young = KEPT + timedelta(seconds=1), KEPT
    files = [file(1, old), file(2, old), file(3, young), file(4, old), file(5, old)]
    assert outlived(files, 3, NOW) == ["1.json", "2.json"]
    assert outlived(files, 5, NOW) == ["1.json", "2.json", "4.json"]
    assert outlived(files[:1], 1, NOW) == []
    assert outlived([], 0, NOW) == []
