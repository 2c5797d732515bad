"""Maintenance inside a running job: when it begins, when it uses the tables, what it says."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from headgate.driver.maintaining import LEAST, Maintaining
from headgate.driver.run_control import BatchLock
from headgate.history.maintenance.requests import (
    MaintenanceAnswer,
    MaintenanceKind,
    MaintenanceRequest,
    new_maintenance_request,
    read_answer,
    request_maintenance,
)
from headgate.lake.tables.errors import FencedError
from headgate.lake.tables.snapshot import tables_of
from tests.unit.history.maintenance.conftest import Fill, fill, prepared
from tests.unit.insight.ledger.conftest import Lake

__all__ = ["fill", "prepared"]  # fixtures

EPOCH = 3
PATHS = ("silver/good", "gold/per_minute")


@pytest.fixture
def lake(fill: Fill) -> Lake:
    return fill(9)


def job(lake: Lake, lock: BatchLock, clock: Callable[[], datetime] | None = None) -> Maintaining:
    tables = [t for t in tables_of(lake.layout, "tiny") if t.name in PATHS]
    for table in tables:
        table.fence(1)
    now = clock or (lambda: datetime.now(UTC))
    turn = lambda _: lock.between_batches()  # noqa: E731
    return Maintaining(lake.layout, lake.pipeline, "gold", tables, turn, EPOCH, now)


def asks(lake: Lake, what: MaintenanceKind, epoch: int = EPOCH) -> MaintenanceRequest:
    request = new_maintenance_request(what, timedelta(), epoch)
    request_maintenance(lake.layout, request)
    return request


def answer(lake: Lake, request: MaintenanceRequest) -> MaintenanceAnswer | None:
    return read_answer(lake.layout, "gold", request)


def steps(maintaining: Maintaining, count: int) -> None:
    for _ in range(count):
        maintaining.step()


def files(lake: Lake, path: str) -> int:
    return len(list(lake.layout.storage.list(f"{path}/data", recursive=True)))


@pytest.mark.slow
def test_a_request_is_worked_off_step_by_step(lake: Lake) -> None:
    maintaining = job(lake, BatchLock())
    maintaining.step()
    request = asks(lake, "compact")
    maintaining.step()
    first = answer(lake, request)
    assert first is not None
    assert (first.is_done, first.reports) == (False, ())
    seen = set()
    for _ in range(20):
        maintaining.step()
        now = answer(lake, request)
        assert now is not None
        seen.add((len(now.reports), now.is_done))
    assert seen == {(0, False), (1, False), (2, False), (2, True)}
    assert {r.table: r.merged.files for r in now.reports} == dict.fromkeys(PATHS, 9)  # type: ignore[union-attr]
    # The job leaves the files of tables alone that it does not write.
    assert files(lake, "bronze/events") == 9
    assert files(lake, "silver/good") == 10


@pytest.mark.slow
def test_no_request_is_worked_off_twice(lake: Lake) -> None:
    maintaining = job(lake, BatchLock())
    request = asks(lake, "compact")
    steps(maintaining, 10)
    (table,) = (t for t in tables_of(lake.layout, "tiny") if t.name == "silver/good")
    table.refresh()
    before = table.version
    request_maintenance(lake.layout, request)
    steps(maintaining, 10)
    table.refresh()
    assert table.version == before


@pytest.mark.parametrize(("epoch", "is_heard"), [(-1, False), (0, True), (1, True)])
def test_what_was_asked_of_the_job_before_is_ignored(
    lake: Lake, epoch: int, is_heard: bool
) -> None:
    """A request that was made while this job was starting counts."""
    request = asks(lake, "compact", EPOCH + epoch)
    job(lake, BatchLock()).step()
    assert (answer(lake, request) is not None) == is_heard


@pytest.mark.slow
def test_commits_wait_for_the_batch_that_runs(lake: Lake) -> None:
    lock = BatchLock()
    maintaining = job(lake, lock)
    asks(lake, "compact")
    maintaining.step()
    stepped = threading.Event()

    def step() -> None:
        for _ in range(10):
            maintaining.step()
        stepped.set()

    with lock.batch():
        thread = threading.Thread(target=step)
        thread.start()
        assert not stepped.wait(1.0)
        (table,) = (t for t in tables_of(lake.layout, "tiny") if t.name == PATHS[0])
        assert table.refresh().kind == "fence"
    thread.join(30)
    assert stepped.is_set()


@pytest.mark.slow
def test_readers_of_a_running_pipeline_are_left_with_something(lake: Lake) -> None:
    moment = datetime.now(UTC)
    maintaining = job(lake, BatchLock(), lambda: moment)
    asks(lake, "compact")
    steps(maintaining, 10)
    asks(lake, "vacuum")
    steps(maintaining, 10)
    assert files(lake, "silver/good") == 10
    moment = datetime.now(UTC) + LEAST + timedelta(minutes=1)
    asks(lake, "vacuum")
    steps(maintaining, 10)
    assert files(lake, "silver/good") == 1


def test_what_goes_wrong_is_told_and_ends_nothing(lake: Lake) -> None:
    maintaining = job(lake, BatchLock())
    stat = next(lake.layout.storage.list("silver/good/data", recursive=True))
    lake.layout.storage.write(stat.path, b"damaged")
    request = asks(lake, "compact")
    steps(maintaining, 5)
    found = answer(lake, request)
    assert found is not None
    assert found.is_done
    assert found.exit_code == 5
    assert "bytes, had" in str(found.error)
    assert "headgate repair" in found.remedy


def test_a_fault_of_headgate_ends_nothing(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*_: object) -> None:
        raise OverflowError("date value out of range")

    maintaining = job(lake, BatchLock())
    monkeypatch.setattr("headgate.history.maintenance.steps.list_files", fault)
    request = asks(lake, "vacuum")
    steps(maintaining, 5)
    found = answer(lake, request)
    assert found is not None
    assert (found.is_done, found.error) == (True, "OverflowError: date value out of range")
    assert "headgate doctor" in found.remedy
    assert "headgate logs" in found.remedy


def test_a_job_that_was_taken_over_ends(lake: Lake) -> None:
    maintaining = job(lake, BatchLock())
    asks(lake, "compact")
    maintaining.step()
    for table in tables_of(lake.layout, "tiny"):
        table.fence(2)
    with pytest.raises(FencedError):
        steps(maintaining, 10)
