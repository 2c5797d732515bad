"""Which driver carries out what a person requests."""

from __future__ import annotations

import pytest

from headgate.cli import driving
from headgate.cli.carried_out import carried_out
from headgate.errors import HeadgateError
from headgate.jobs.driver import Driver
from headgate.jobs.lease_store import LeaseHeldError
from tests.unit.ledger.conftest import Lake

WORDS = HeadgateError("neither happens", remedy="look")


@pytest.mark.parametrize("runs", [False, True])
def test_a_driver_that_runs_or_one_that_ends_after_it(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], runs: bool
) -> None:
    driven: list[Driver] = []

    def drive(driver: Driver) -> None:
        driven.append(driver)
        if runs:
            raise LeaseHeldError("another holds it", remedy="wait")

    monkeypatch.setattr(driving, "drive", drive)
    monkeypatch.setattr(driving, "jars_for", lambda declared: ())
    found = carried_out(lake.pipeline, "lake", lambda: (len(driven), True), gone=WORDS, waits=WORDS)
    assert found == 1
    task = driven[0]._task
    assert (task.once, task.only_open, task.root) == (True, True, "lake")
    assert ("the running driver does it between two batches" in capsys.readouterr().err) is runs
