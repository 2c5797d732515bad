"""What the page keeps of each stream for its viewers, and for how long."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import pytest

from headgate.airflow.page import reports
from headgate.airflow.page.reports import Reports, StreamAddress, StreamReport, read
from headgate.declaration.load import load
from headgate.supervision.launcher import LOCAL
from tests.support.waiting import wait_until
from tests.unit.insight.ledger.conftest import DECLARATION, Lake, fill

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
SHOP, OTHER = (StreamAddress(f"{name}.yml", name, "root", LOCAL) for name in ("shop", "other"))


@pytest.fixture
def subject(tmp_path: Path) -> StreamAddress:
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION)
    fill(Lake(tmp_path / "lake", load(file)))
    return StreamAddress(str(file), "tiny", str(tmp_path / "lake"), LOCAL)


@pytest.fixture
def gate() -> Iterator[Event]:
    """It is opened at the end; otherwise the readers' threads would never end."""
    opened = Event()
    yield opened
    opened.set()


def test_what_is_fresh_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "FRESH", 3600.0)
    asked: list[StreamAddress] = []

    def reader(subject: StreamAddress, before: StreamReport) -> StreamReport:
        asked.append(subject)
        return replace(before, at=NOON)

    kept = Reports(reader)
    for _ in range(3):
        assert [report.at for report in kept.of([SHOP, OTHER])] == [NOON, NOON]
    assert sorted(each.name for each in asked) == ["other", "shop"]


def test_what_has_grown_old_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "FRESH", 0.0)
    kept = Reports(lambda _, before: replace(before, at=NOON, cost=before.cost + 1))
    assert [kept.of([SHOP])[0].cost for _ in range(3)] == [1, 2, 3]


def test_tables_that_do_not_answer_hold_up_nobody(gate: Event) -> None:
    asked: list[StreamAddress] = []

    def reader(subject: StreamAddress, before: StreamReport) -> StreamReport:
        asked.append(subject)
        if subject == SHOP:
            gate.wait()
        return replace(before, at=NOON)

    kept = Reports(reader, waits=2.0)
    for _ in range(2):
        slow, other = kept.of([SHOP, OTHER])
        assert slow.error == "its tables have not been read yet"
        assert (other.at, other.error) == (NOON, None)
    assert asked.count(SHOP) == 1, "it is asked once at a time"


def test_many_streams_that_do_not_answer_delay_no_other(gate: Event) -> None:
    hanging = [StreamAddress(f"{n}.yml", f"{n}", "root", LOCAL) for n in range(24)]

    def reader(subject: StreamAddress, before: StreamReport) -> StreamReport:
        if subject != SHOP:
            gate.wait()
        return replace(before, at=NOON)

    kept = Reports(reader, waits=0.01)
    for _ in range(2):  # no stream is read a second time
        kept.of(hanging)
    wait_until(lambda: kept.of([SHOP])[0].at == NOON, "it is not read", 20)


def test_the_last_report_is_shown_while_a_stream_answers_late(
    gate: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "FRESH", 0.0)

    def reader(subject: StreamAddress, before: StreamReport) -> StreamReport:
        if before.at is not None:
            gate.wait()
        return replace(before, at=NOON)

    kept = Reports(reader, waits=2.0)
    assert kept.of([SHOP]) == kept.of([SHOP]) == [StreamReport(at=NOON)]


def test_life_and_tables_are_read(subject: StreamAddress) -> None:
    report = read(subject, StreamReport())
    assert report.error is None
    assert report.status is not None
    assert report.tables is not None
    assert report.tables.account is not None


def test_tables_are_read_less_often_the_more_that_costs(subject: StreamAddress) -> None:
    first = read(subject, StreamReport())
    dear = replace(first, cost=3600.0)
    assert read(subject, dear).tables is first.tables
    assert read(subject, replace(first, cost=0.0)).tables is not first.tables


def test_a_mistake_in_the_declaration_leaves_the_status_readable(subject: StreamAddress) -> None:
    Path(subject.file).write_text("pipeline: tiny\nsources: 3\n")
    report = read(subject, StreamReport())
    assert report.error is not None
    assert "tiny.yml:2" in report.error
    assert report.status is not None
    assert report.tables is None


@pytest.mark.parametrize("launcher", ["nowhere:Nobody", "headgate.supervision.launcher:LOCAL"])
def test_an_unknown_launcher_is_reported(subject: StreamAddress, launcher: str) -> None:
    report = read(replace(subject, launcher=launcher), StreamReport())
    assert report.error is not None
    assert report.status is None
    assert report.tables is not None


def test_workers_and_triggerers_load_no_page() -> None:
    """Every Airflow process loads the plugins."""
    script = (
        "import sys; from headgate.airflow.page.plugin import HeadgatePlugin; HeadgatePlugin();"
        "print('headgate.airflow.page.app' in sys.modules, 'deltalake' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False"]
