"""What is reported of a stream while something that is no driver holds its lease."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.cli import restoring
from headgate.cli.lifecycle.run import go_back
from headgate.declaration.load import load
from headgate.driver.lease import Lease
from headgate.history.savepoints.store import create_savepoint
from headgate.insight.status.report import StreamStatus, stream_status
from headgate.lake.control import ownership
from headgate.lake.control.driver_requests import request_stop
from headgate.lake.control.ownership import LAYERS, Owner, lease_path
from headgate.lake.storage.documents import read_document, write_document
from headgate.supervision.job_state import probe
from tests.support.failing import passing
from tests.unit.insight.ledger.conftest import DECLARATION, Lake, fill
from tests.unit.supervision.conftest import report


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION)
    lake = Lake(tmp_path / "lake", load(file))
    fill(lake)
    return lake


def seen(lake: Lake) -> StreamStatus:
    now = datetime.now(UTC)
    return stream_status(lake.layout, probe(lake.layout, now), now)


@contextmanager
def driver(lake: Lake, failed: bool = False) -> Iterator[None]:
    """A driver's documents, from its start to its end."""
    lease = Lease(lake.layout, LAYERS, "tiny")
    report(lake.layout, "fused", epoch=lease.take(), n=2, updated=datetime.now(UTC))
    yield
    lease.failed = failed
    lease.release()


def stopped(lake: Lake) -> None:
    with driver(lake):
        request_stop(lake.layout)
    assert seen(lake).condition == "resting"


def owner_is_gone(lake: Lake) -> None:
    """Write leases whose owner is a process that does not exist."""
    for layer in LAYERS:
        document = read_document(lake.layout.storage, lease_path(layer))
        assert document is not None
        gone = vars(Owner(2**22 + 1, Owner.here().host, 0.0))
        write_document(lake.layout.storage, lease_path(layer), document | gone)


def test_a_restore_is_reported_until_its_driver_runs(lake: Lake) -> None:
    """It is never reported as an unrequested end, because supervision would then start a driver."""
    taken = create_savepoint(lake.layout, lake.pipeline, datetime.now(UTC))
    stopped(lake)
    found: list[tuple[str, str | None]] = []

    def look(*_: object) -> None:
        status = seen(lake)
        found.append((status.condition, status.operation))

    with passing(look):
        go_back(lake.pipeline, lake.layout, taken.id)
    look()
    lease = Lease(lake.layout, LAYERS, "tiny")
    epoch = lease.take()
    look()
    report(lake.layout, "fused", epoch=epoch, n=2, updated=datetime.now(UTC))
    status = seen(lake)
    lease.release()
    assert set(found[:-1]) == {("starting", "restore")}
    assert len(found) > 2
    assert found[-1] == ("starting", None)
    assert (status.condition, status.operation, status.restarts) == ("running", None, 0)


@pytest.mark.slow
def test_a_restore_whose_driver_never_comes_leaves_things_as_they_were(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = create_savepoint(lake.layout, lake.pipeline, datetime.now(UTC))
    stopped(lake)
    go_back(lake.pipeline, lake.layout, taken.id)
    monkeypatch.setattr(ownership, "EXPIRES_AFTER", timedelta())
    assert seen(lake).condition == "resting"
    monkeypatch.undo()
    owner_is_gone(lake)
    assert seen(lake).condition == "resting"


@pytest.mark.slow
def test_what_is_done_to_a_stopped_stream_does_not_end_its_rest(lake: Lake) -> None:
    taken = create_savepoint(lake.layout, lake.pipeline, datetime.now(UTC))
    stopped(lake)
    before = seen(lake)
    for _ in range(2):
        restoring.restore_in_place(lake.pipeline, lake.layout, taken)
        assert seen(lake) == before
    killed = Lease(lake.layout, LAYERS, "tiny", "repair")
    killed.take()
    owner_is_gone(lake)
    assert seen(lake) == before


def test_an_operation_that_takes_long_is_not_stuck(lake: Lake) -> None:
    lease = Lease(lake.layout, LAYERS, "tiny", "repair")
    lease.take()
    now = datetime.now(UTC)
    (job,) = probe(lake.layout, now)
    since_long = replace(job, since=now - timedelta(hours=1))
    assert stream_status(lake.layout, [since_long], now).condition == "starting"
    lease.release()


def test_drivers_that_came_after_one_that_went_down_are_counted(lake: Lake) -> None:
    with driver(lake):
        assert seen(lake).restarts == 0
    with driver(lake, failed=True):
        assert seen(lake).restarts == 0, "the one before ended in good order"
    with driver(lake):
        assert seen(lake).restarts == 1
    Lease(lake.layout, LAYERS, "tiny").take()
    owner_is_gone(lake)
    Lease(lake.layout, LAYERS, "tiny").take()
    assert seen(lake).restarts == 2
    Lease(lake.layout, LAYERS, "tiny").take(take_over=True)
    assert seen(lake).restarts == 2, "somebody wanted that"
